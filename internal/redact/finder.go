package redact

import (
	"slices"
	"strings"
	"unicode/utf8"

	"rnix/internal/hidden"
)

// anchorLen is how many bytes of a form are looked for at once: as many as one word holds. What follows them is compared where
// they are found, so the tables do not grow with the length of a secret.
const anchorLen = 8

// Between two bytes of a form there may be one broken line, "\r\n", and so many bytes that no screen shows, such as colours.
const (
	maxEnds   = 2
	maxUnseen = 2 * hidden.MaxSequence
)

// form is one way to write a secret, without line ends and what no screen shows.
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

// hit is where a secret stands: from at to to. at is -1 if there is none; then open is where something begins that may be one
// with what follows, and before open there is none.
type hit struct {
	at, to int
	name   string
	open   int
}

// scan finds the secrets of a text, one after the other. It reads the text as it stands, and as a screen shows it: a colour may
// stand within a secret, or seem to begin with its first letter.
type scan struct {
	f       *finder
	text    string
	last    bool // nothing follows
	written hit
	seen    hit
	twice   bool // the two are not the same
}

// scan begins with the secrets in a text that may go on, if last is not set.
func (f *finder) scan(text string, last bool) *scan {
	s := &scan{f: f, text: text, last: last, twice: unseenIn(text)}
	s.written, s.seen = hit{at: -2}, hit{at: -2}
	return s
}

// stale reports whether a hit says nothing of what is at or behind from.
func (h hit) stale(from int) bool { return h.at < from && (h.at != -1 || h.open < from) }

// next returns the first secret at or behind from, the longest if several begin there. It is called with the end of the one
// before.
func (s *scan) next(from int) hit {
	if s.written.stale(from) {
		s.written = s.f.search(s.text, from, s.last, false)
	}
	if !s.twice {
		return s.written
	}
	if s.seen.stale(from) {
		s.seen = s.f.search(s.text, from, s.last, true)
	}
	a, b := s.written, s.seen
	switch {
	case a.at < 0 && b.at < 0:
		a.open = min(a.open, b.open)
		return a
	case a.at < 0:
		a, b = b, a
	case b.at >= 0 && (b.at < a.at || b.at == a.at && b.to > a.to):
		a, b = b, a
	}
	if b.at < 0 && b.open < a.at { // what may begin there comes first
		a = hit{at: -1, open: b.open}
	}
	return a
}

// unseenIn reports whether a text holds what no screen shows.
func unseenIn(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case c >= ' ' && c < 0x7f || c == '\n' || c == '\r' || c == '\t':
		case c < utf8.RuneSelf:
			return true
		default:
			if n, open := hidden.Len(text[i:]); n > 0 || open {
				return true
			}
		}
	}
	return false
}

// search returns the first secret in text at or behind from, the longest if several begin there. With unseen, what no screen
// shows may stand within it.
func (f *finder) search(text string, from int, last, unseen bool) hit {
	var w uint64
	var place [anchorLen]int // of the last bytes that count
	n, gap, i := 0, gap{}, from
	for i < len(text) {
		c := text[i]
		if c <= '\r' && lineEnd(c) || unseen && (c < ' ' || c >= 0x7f) {
			skip, whole := gap.skip(text[i:], last)
			if !whole {
				break
			}
			if gap.wide() {
				n = 0
			}
			if skip > 0 {
				i += skip
				continue
			}
		}
		gap.end()
		w = w<<8 | uint64(c)
		place[n%anchorLen] = i
		i++
		n++
		if h := hash(w); f.maybe[h>>6&(1<<10-1)]&(1<<(h&63)) == 0 || n < anchorLen {
			continue
		}
		for _, x := range f.anchors[w] {
			end, short := follows(text, i, x.text[anchorLen:], last, unseen)
			switch {
			case end >= 0:
				return hit{place[n%anchorLen], end, x.name, 0}
			case short && !last:
				return hit{at: -1, open: place[n%anchorLen]}
			}
		}
	}
	if last {
		return hit{at: -1, open: len(text)}
	}
	for k := min(n, anchorLen-1); k > 0; k-- {
		if f.heads[k][w&(1<<(8*k)-1)] {
			return hit{at: -1, open: place[(n-k)%anchorLen]}
		}
	}
	return hit{at: -1, open: i}
}

// follows returns where rest ends if it stands in text from i on, but for what may stand between; else -1. short says that
// text ends before that is known.
func follows(text string, i int, rest string, last, unseen bool) (end int, short bool) {
	gap := gap{}
	for j := 0; j < len(rest); {
		if i >= len(text) {
			return -1, true
		}
		if c := text[i]; c == rest[j] && (c < utf8.RuneSelf || !unseen) {
			j++
			i++
			gap.end()
			continue
		} else if !lineEnd(c) && (!unseen || c >= ' ' && c < 0x7f) {
			return -1, false
		}
		n, whole := gap.skip(text[i:], last)
		switch {
		case !whole:
			return -1, true
		case n == 0 && text[i] == rest[j]:
			j++
			gap.end()
			n = 1
		case n == 0 || gap.wide():
			return -1, false
		}
		i += n
	}
	return i, false
}

// gap is what stands between two bytes of a form: the end of a line, and what no screen shows.
type gap struct{ ends, unseen int }

// skip returns how many bytes at the start of text are no part of a form. whole is false if that is only known with what
// follows.
func (g *gap) skip(text string, last bool) (n int, whole bool) {
	if lineEnd(text[0]) {
		g.ends++
		return 1, true
	}
	n, open := hidden.Len(text)
	if open && !last {
		return 0, false
	}
	g.unseen += n
	return n, true
}

// wide reports whether what was skipped is more than stands within a form.
func (g *gap) wide() bool { return g.ends > maxEnds || g.unseen > maxUnseen }

// end is where the gap ends.
func (g *gap) end() { g.ends, g.unseen = 0, 0 }

func lineEnd(c byte) bool { return c == '\n' || c == '\r' }

// bare returns a text without what may stand within a form.
func bare(text string) string {
	return strings.NewReplacer("\n", "", "\r", "").Replace(hidden.Strip(text))
}
