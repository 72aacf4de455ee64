package cli

import (
	"regexp"
	"strings"
)

// leastText is the width in cells that what hangs beside a name keeps at least.
const leastText = 24

// named are the words at the beginning of a line, and the blanks behind them, beside which its text hangs.
var named = regexp.MustCompile(`^ *\S+(?: \S+)* {2,}`)

// fit breaks the lines of a help text that are longer than width cells, between words: paragraphs are filled anew, and what stands beside a name hangs
// there. Lines that fit stay as they are. 0 = no limit.
func fit(text string, width int) string {
	if width <= 0 {
		return text
	}
	var out []string
	for lines := strings.Split(text, "\n"); len(lines) > 0; {
		n := 1
		if inParagraph(lines[0]) {
			for n < len(lines) && inParagraph(lines[n]) {
				n++
			}
		}
		out = append(out, fill(lines[:n], width)...)
		lines = lines[n:]
	}
	return strings.Join(out, "\n")
}

// inParagraph reports whether a line is one of a paragraph.
func inParagraph(line string) bool { return line != "" && line[0] != ' ' && line[0] != '\t' }

// fill breaks the lines of a paragraph, or one line that is none.
func fill(lines []string, width int) []string {
	long := false
	for _, l := range lines {
		long = long || cells(l) > width
	}
	if !long {
		return lines
	}
	first := lines[0][:len(lines[0])-len(strings.TrimLeft(lines[0], " "))]
	if found := named.FindString(lines[0]); found != "" && cells(found) <= width-leastText {
		first = found
	}
	hang := strings.Repeat(" ", cells(first))
	if cells(first) > width-leastText {
		return lines // there is no room
	}
	var out []string
	line, used := first, cells(first)
	fresh := true // nothing stands in the line yet
	for _, word := range strings.Fields(strings.Join(lines, " ")[len(first):]) {
		if n := cells(word); fresh {
			line, used, fresh = line+word, used+n, false
		} else if used+1+n <= width {
			line, used = line+" "+word, used+1+n
		} else {
			out = append(out, line)
			line, used = hang+word, len(hang)+n
		}
	}
	return append(out, line)
}
