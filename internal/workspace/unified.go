package workspace

import (
	"bytes"
	"fmt"
	"strings"
)

// contextLines are shown before and after each change.
const contextLines = 3

// maxEdits bounds the work of a comparison: texts that differ more are shown as replaced whole.
const maxEdits = 4000

// isBinary reports whether bytes are not text, by the rule of git: a NUL byte near the beginning.
func isBinary(b []byte) bool { return bytes.IndexByte(b[:min(len(b), 8000)], 0) >= 0 }

// splitLines cuts text after each line end.
func splitLines(b []byte) []string {
	if len(b) == 0 {
		return nil
	}
	return strings.SplitAfter(strings.TrimSuffix(string(b), "\n")+"\n", "\n")[:bytes.Count(bytes.TrimSuffix(b, []byte("\n")), []byte("\n"))+1]
}

// hunk says that a[a0:a1] became b[b0:b1].
type hunk struct{ a0, a1, b0, b1 int }

// compare returns what is different between two lists of lines, in order. It is the greedy algorithm of
// Myers on what is left between the common beginning and end.
func compare(a, b []string) []hunk {
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	x, y := a[head:len(a)-tail], b[head:len(b)-tail]
	if len(x) == 0 && len(y) == 0 {
		return nil
	}
	whole := []hunk{{head, len(a) - tail, head, len(b) - tail}}
	if len(x) == 0 || len(y) == 0 {
		return whole
	}
	most := min(len(x)+len(y), maxEdits)
	reach := make([]int, 2*most+3) // how far into x the diagonal k-most has come
	var trail [][]int
	for d := 0; d <= most; d++ {
		trail = append(trail, append([]int(nil), reach[most-d:most+d+3]...))
		for k := -d; k <= d; k += 2 {
			i := most + 1 + k
			at := reach[i-1] + 1
			if k == -d || k != d && reach[i-1] < reach[i+1] {
				at = reach[i+1]
			}
			for at < len(x) && at-k < len(y) && at-k >= 0 && x[at] == y[at-k] {
				at++
			}
			reach[i] = at
			if at >= len(x) && at-k >= len(y) {
				return walkBack(trail, len(x), len(y), head)
			}
		}
	}
	return whole
}

// walkBack follows the trail of compare from its end and returns the changes, moved by offset.
func walkBack(trail [][]int, i, j, offset int) []hunk {
	var out []hunk
	for d := len(trail) - 1; d > 0; d-- {
		row := trail[d] // row[1+d+k] is the diagonal k
		k := i - j
		prev := k - 1
		if k == -d || k != d && row[1+d+k-1] < row[1+d+k+1] {
			prev = k + 1
		}
		pi := row[1+d+prev]
		pj := pi - prev
		for i > pi && j > pj && i-1 >= 0 && j-1 >= 0 && (i-pi)+(j-pj) > 1 {
			i, j = i-1, j-1
		}
		h := hunk{pi + offset, i + offset, pj + offset, j + offset}
		if n := len(out); n > 0 && out[n-1].a0 == h.a1 && out[n-1].b0 == h.b1 {
			out[n-1].a0, out[n-1].b0 = h.a0, h.b0
		} else {
			out = append(out, h)
		}
		i, j = pi, pj
	}
	for l, r := 0, len(out)-1; l < r; l, r = l+1, r-1 {
		out[l], out[r] = out[r], out[l]
	}
	return out
}

// unified writes the changes of one text as a unified diff without its header, and counts lines.
func unified(out *bytes.Buffer, before, after []byte) (added, deleted int) {
	a, b := splitLines(before), splitLines(after)
	openA, openB := len(before) > 0 && before[len(before)-1] != '\n', len(after) > 0 && after[len(after)-1] != '\n'
	if openA { // a last line without an end is another line than one with it
		a[len(a)-1] = strings.TrimSuffix(a[len(a)-1], "\n")
	}
	if openB {
		b[len(b)-1] = strings.TrimSuffix(b[len(b)-1], "\n")
	}
	emit := func(sign byte, l string) {
		out.WriteByte(sign)
		out.WriteString(l)
		if !strings.HasSuffix(l, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
	changes := compare(a, b)
	for len(changes) > 0 {
		n := 1
		for n < len(changes) && changes[n].a0-changes[n-1].a1 <= 2*contextLines {
			n++
		}
		group := changes[:n]
		changes = changes[n:]
		first, last := group[0], group[n-1]
		lead := min(contextLines, first.a0)
		trail := min(contextLines, len(a)-last.a1)
		a0, a1, b0, b1 := first.a0-lead, last.a1+trail, first.b0-lead, last.b1+trail
		fmt.Fprintf(out, "@@ -%s +%s @@\n", span(a0, a1), span(b0, b1))
		at := a0
		for _, h := range group {
			for ; at < h.a0; at++ {
				emit(' ', a[at])
			}
			for ; at < h.a1; at++ {
				emit('-', a[at])
				deleted++
			}
			for i := h.b0; i < h.b1; i++ {
				emit('+', b[i])
				added++
			}
		}
		for ; at < a1; at++ {
			emit(' ', a[at])
		}
	}
	return added, deleted
}

// span writes lines from to to, as a header of a hunk has it.
func span(from, to int) string {
	switch to - from {
	case 0:
		return fmt.Sprintf("%d,0", from)
	case 1:
		return fmt.Sprint(from + 1)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

// Unified returns what is different between two texts as a unified diff without its header; empty = nothing.
func Unified(before, after []byte) string {
	var out bytes.Buffer
	unified(&out, before, after)
	return out.String()
}
