package redact

import (
	"slices"
	"strings"
)

// anchorLen is how many bytes of a form are looked for at once: as many as one word holds. What follows them is compared where
// they are found, so the tables do not grow with the length of a secret.
const anchorLen = 8

// maxGap is how many bytes of a broken line may stand within a form: "\r\n".
const maxGap = 2

// form is one way to write a secret, without line ends.
type form struct {
	text string
	name string // what takes its place
}

// finder finds the forms of the secrets of a set. It is never changed.
type finder struct {
	maybe   [1 << 10]uint64            // a bit for the hash of each anchor: nearly all places are passed by one look
	anchors map[uint64][]form          // by their first bytes, the longest first
	heads   [anchorLen]map[uint64]bool // the first n bytes of anchors, for a text that ends within one
}

func newFinder(names map[string]string) *finder {
	f := &finder{anchors: map[uint64][]form{}}
	for n := range f.heads {
		f.heads[n] = map[uint64]bool{}
	}
	for value, name := range names {
		for _, text := range formsOf(value) {
			f.add(form{text, name})
		}
	}
	for _, forms := range f.anchors {
		slices.SortFunc(forms, func(a, b form) int { return len(b.text) - len(a.text) })
	}
	return f
}

func (f *finder) add(x form) {
	if len(x.text) < anchorLen {
		return
	}
	var w uint64
	for n, c := range []byte(x.text[:anchorLen]) {
		f.heads[n][w] = true // what stands before the n-th byte
		w = w<<8 | uint64(c)
	}
	if slices.ContainsFunc(f.anchors[w], func(y form) bool { return y.text == x.text }) {
		return
	}
	f.anchors[w] = append(f.anchors[w], x)
	h := hash(w)
	f.maybe[h>>6] |= 1 << (h & 63)
}

// hash spreads the anchors over the 65536 bits.
func hash(w uint64) uint64 { return w * 0x9E3779B97F4A7C15 >> 48 }

// find returns the first secret in text at or behind from, the longest if several begin there; at is -1 if there is none.
func (f *finder) find(text string, from int) (at, to int, name string) {
	at, to, name, _ = f.search(text, from, true)
	return at, to, name
}

// search is find for a text that may go on, if last is not set: then open is where something begins that may be a
// secret with what follows. Before open there is none.
func (f *finder) search(text string, from int, last bool) (at, to int, name string, open int) {
	var w uint64
	n, gap := 0, 0 // bytes since from that are no line ends; line ends since the last of them
	for i := from; i < len(text); i++ {
		c := text[i]
		if c <= '\r' && lineEnd(c) {
			if gap++; gap > maxGap {
				n = 0
			}
			continue
		}
		gap = 0
		w = w<<8 | uint64(c)
		n++
		if h := hash(w); f.maybe[h>>6&(1<<10-1)]&(1<<(h&63)) == 0 || n < anchorLen {
			continue
		}
		for _, x := range f.anchors[w] {
			end, short := follows(text, i+1, x.text[anchorLen:])
			switch {
			case end >= 0:
				return back(text, i+1, anchorLen), end, x.name, 0
			case short && !last:
				return -1, 0, "", back(text, i+1, anchorLen)
			}
		}
	}
	if last {
		return -1, 0, "", len(text)
	}
	for k := min(n, anchorLen-1); k > 0; k-- {
		if f.heads[k][w&(1<<(8*k)-1)] {
			return -1, 0, "", back(text, len(text), k)
		}
	}
	return -1, 0, "", len(text)
}

func lineEnd(c byte) bool { return c == '\n' || c == '\r' }

// back returns the place of the k-th byte before i that is no line end.
func back(text string, i, k int) int {
	for k > 0 {
		if i--; !lineEnd(text[i]) {
			k--
		}
	}
	return i
}

// follows returns where rest ends if it stands in text from i on, but for line ends; else -1. short says that text ends
// before that is known.
func follows(text string, i int, rest string) (end int, short bool) {
	gap := 0
	for j := 0; j < len(rest); i++ {
		if i >= len(text) {
			return -1, true
		}
		switch c := text[i]; {
		case c == rest[j]:
			j++
			gap = 0
		case lineEnd(c) && gap < maxGap:
			gap++
		default:
			return -1, false
		}
	}
	return i, false
}

// withoutLineEnds returns a text without line ends.
func withoutLineEnds(text string) string {
	return strings.NewReplacer("\n", "", "\r", "").Replace(text)
}
