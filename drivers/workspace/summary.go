package workspace

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

const (
	around    = 3   // lines shown before and after a change
	sideLines = 30  // lines shown of each side of a change
	sideWidth = 300 // bytes shown of each of them
)

// summary says what a change has done to a file: counts of lines, and the region from the first to
// the last line that is different.
func summary(name string, cur current, content []byte) string {
	if !cur.exists() {
		return fmt.Sprintf("created %s: %s, %d bytes\n", name, plural(len(lines(string(content)))), len(content))
	}
	old, new := string(cur.content), string(content)
	if old == new {
		return fmt.Sprintf("%s already has this content\n", name)
	}
	if !utf8.ValidString(old) || strings.IndexByte(old, 0) >= 0 {
		return fmt.Sprintf("replaced %s: %d bytes, %d before\n", name, len(new), len(old))
	}
	a, b := lines(old), lines(new)
	head := 0
	for head < len(a) && head < len(b) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < len(a)-head && tail < len(b)-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	removed, added := a[head:len(a)-tail], b[head:len(b)-tail]
	from := max(0, head-around)
	after := b[len(b)-tail : min(len(b), len(b)-tail+around)]

	var out strings.Builder
	fmt.Fprintf(&out, "changed %s: %s removed, %d added, %s now\n", name, plural(len(removed)), len(added), plural(len(b)))
	fmt.Fprintf(&out, "@@ -%d,%d +%d,%d @@\n", from+1, head-from+len(removed)+len(after), from+1, head-from+len(added)+len(after))
	side(&out, ' ', b[from:head])
	side(&out, '-', removed)
	side(&out, '+', added)
	side(&out, ' ', after)
	return out.String()
}

// side writes lines with their sign, the first ones of many.
func side(out *strings.Builder, sign byte, lines []string) {
	for i, l := range lines {
		if i == sideLines {
			fmt.Fprintf(out, "%c[%s more]\n", sign, plural(len(lines)-i))
			return
		}
		if len(l) > sideWidth {
			l = strings.ToValidUTF8(l[:sideWidth], "") + fmt.Sprintf("... [%d bytes]", len(l))
		}
		out.WriteByte(sign)
		out.WriteString(strings.TrimRight(l, "\r\n") + "\n")
	}
}

// lines cuts text after each line end.
func lines(text string) []string {
	out := strings.SplitAfter(text, "\n")
	if out[len(out)-1] == "" {
		out = out[:len(out)-1]
	}
	return out
}

func plural(n int) string {
	if n == 1 {
		return "1 line"
	}
	return fmt.Sprintf("%d lines", n)
}
