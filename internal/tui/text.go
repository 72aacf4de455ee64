package tui

import (
	"strings"
	"unicode"
	"unicode/utf8"

	"rnix/debug"
	"rnix/internal/hidden"
)

// Text that comes from an agent, a model or a file passes through clean or line before anything else is done with
// it. What they return has no control sequences, no tabs, and as many cells on every terminal as we count.

// tabStop is how wide a tab is at most, in cells.
const tabStop = 4

// maxLine is the longest text in bytes that line looks at: nothing longer fits any screen.
const maxLine = 4096

// clean returns text of many lines as it may be shown: debug.Sanitize, tabs as blanks, characters that have no width or
// another one on each terminal taken out.
func (t *Theme) clean(s string) string {
	if plainASCII(s) {
		return s
	}
	s = debug.Sanitize(s)
	if plainASCII(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + len(s)/16)
	column, marks := 0, 0
	pictures := false // the character before is one of those that are joined
	for _, r := range s {
		switch {
		case r == '\n':
			b.WriteByte('\n')
			column, marks, pictures = 0, 0, false
			continue
		case r == '\t':
			n := tabStop - column%tabStop
			b.WriteString("    "[:n])
			column, marks, pictures = column+n, 0, false
			continue
		case r < utf8.RuneSelf:
			b.WriteByte(byte(r))
			column, marks, pictures = column+1, 0, false
			continue
		case t.Pure:
			b.WriteByte('?')
			column++
			continue
		case hidden.Widthless(r), r == 0x200d && pictures:
			continue
		case r == 0x2028, r == 0x2029:
			b.WriteByte('\n')
			column, marks, pictures = 0, 0, false
			continue
		case r == 0x200c, r == 0x200d, unicode.In(r, unicode.Mn, unicode.Me):
			if marks++; marks > 4 || column == 0 && marks == 1 {
				continue // more than any language has upon one letter, or upon none
			}
			b.WriteRune(r)
			continue
		case r >= 0x1f1e6 && r <= 0x1f1ff: // two of them are a flag on some terminals, and two letters on others
			b.WriteRune('A' + r - 0x1f1e6)
			column, marks, pictures = column+1, 0, false
			continue
		case r >= 0x1f3fb && r <= 0x1f3ff && pictures:
			continue // the colour of a skin
		}
		b.WriteRune(r)
		column, marks, pictures = column+1, 0, r >= 0x2190
		// A wide one counts once here: tabs behind it are a matter of looks.
	}
	return b.String()
}

// plainASCII reports whether all of s is printable ASCII or a line break.
func plainASCII(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < ' ' && c != '\n') || c >= 0x7f {
			return false
		}
	}
	return true
}

// line returns text clean and on one line, its blanks single.
func (t *Theme) line(s string) string {
	if len(s) > maxLine {
		s = s[:maxLine]
	}
	if plainASCII(s) && !strings.Contains(s, "  ") && !strings.Contains(s, "\n") {
		return strings.TrimSpace(s)
	}
	return strings.Join(strings.Fields(t.clean(s)), " ")
}

// cells returns how many columns clean text takes, styles not counted.
func (t *Theme) cells(s string) int {
	if plainASCII(s) && !strings.Contains(s, "\n") {
		return len(s)
	}
	return t.method.StringWidth(s)
}

// cut returns one line in at most n cells; a cut one ends in an ellipsis. Styles in it are kept.
func (t *Theme) cut(s string, n int) string {
	switch {
	case n <= 0:
		return ""
	case t.cells(s) <= n:
		return s
	}
	for k := n; k > 0; k-- { // a cluster at the edge may take a cell too many
		if out := t.method.Truncate(s, k, t.ellipsis()); t.cells(out) <= n {
			return out
		}
	}
	return ""
}

// pad returns one line in exactly n cells.
func (t *Theme) pad(s string, n int) string {
	s = t.cut(s, n)
	return s + blanks(n-t.cells(s))
}

// right is pad with the text at the right.
func (t *Theme) right(s string, n int) string {
	s = t.cut(s, n)
	return blanks(n-t.cells(s)) + s
}

// fit returns text in exactly w cells and h lines.
func (t *Theme) fit(s string, w, h int) []string {
	out := make([]string, 0, max(h, 0))
	for l := range strings.SplitSeq(s, "\n") {
		if len(out) >= h {
			break
		}
		out = append(out, t.pad(l, w))
	}
	for len(out) < h {
		out = append(out, blanks(w))
	}
	return out
}

func blanks(n int) string {
	if n <= 0 {
		return ""
	}
	return strings.Repeat(" ", n)
}
