package tui

import (
	"strings"
	"unicode/utf8"

	"github.com/charmbracelet/x/ansi"
)

// long is a text of any length in a window that scrolls. What it shows is cut into lines only where it is seen, so
// that five megabytes, be they one line, cost no more than a page: a window knows its place as a part of the text and
// a row in that. It belongs to the goroutine of the program.
type long struct {
	t     *Theme
	parts []part
	size  int // bytes of all parts
	at    place2
	w, h  int  // of the window, as it was drawn last
	tail  bool // the end is to be seen when something is added
	find  finder
}

// part is a piece of clean text without line breaks.
type part struct {
	text string
	more bool // the line goes on in the next part
	// style is how it stands out where nothing in it was searched for.
	style style
}

// place2 is a row of a part.
type place2 struct{ part, row int }

// maxPart is the longest part in bytes: so much is cut into rows at once.
const maxPart = 4096

func newLong(t *Theme) *long { return &long{t: t} }

// set replaces the text, which may come from an agent. The window stays where it was, if there is as much.
func (l *long) set(text string) {
	l.parts, l.size = l.parts[:0:0], 0
	l.add(text)
	l.at.part = min(l.at.part, max(len(l.parts)-1, 0))
	l.bound()
}

// add appends text, which begins a line of its own.
func (l *long) add(text string) {
	text = strings.TrimSuffix(l.t.clean(text), "\n")
	l.size += len(text)
	for line := range strings.SplitSeq(text, "\n") {
		for len(line) > maxPart {
			n := maxPart
			for n > maxPart-utf8.UTFMax && !utf8.RuneStart(line[n]) {
				n--
			}
			l.parts = append(l.parts, part{text: line[:n], more: true})
			line = line[n:]
		}
		l.parts = append(l.parts, part{text: line})
	}
	if l.tail {
		l.end()
	}
}

// tint colours the difference of a file that the parts from one on have, if there is one: it begins with a line that begins with @@.
func (l *long) tint(from int) {
	inside := false
	for i := from; i < len(l.parts); i++ {
		switch p := &l.parts[i]; {
		case i > from && l.parts[i-1].more:
			p.style = l.parts[i-1].style
		case inside || strings.HasPrefix(p.text, "@@ "):
			inside, p.style = true, ChangeStyle(p.text)
		}
	}
}

// drop takes the first parts away until at most so many bytes are left.
func (l *long) drop(size int) {
	n := 0
	for ; n < len(l.parts)-1 && l.size > size; n++ {
		l.size -= len(l.parts[n].text)
	}
	if n > 0 {
		l.parts = append([]part(nil), l.parts[n:]...)
		if l.at.part -= n; l.at.part < 0 {
			l.at = place2{}
		}
	}
}

// rows returns the rows of a part, at the width of the window. There is at least one.
func (l *long) rows(i int) []string {
	s, w := l.parts[i].text, max(l.w, 1)
	if l.t.cells(s) <= w {
		return []string{s}
	}
	var out []string
	for s != "" {
		n := l.row(s, w)
		out = append(out, s[:n])
		s = strings.TrimPrefix(s[n:], " ")
	}
	return out
}

// row returns how many bytes of s the first row takes: up to a blank, if there is one in its second half.
func (l *long) row(s string, w int) int {
	n, used, blank := 0, 0, 0
	for n < len(s) {
		size, cells := 1, 1
		if c := s[n]; c >= utf8.RuneSelf || n+1 < len(s) && s[n+1] >= utf8.RuneSelf {
			var g string
			g, cells = ansi.FirstGraphemeCluster(s[n:], l.t.method)
			size = len(g)
		}
		if used+cells > w && n > 0 {
			if blank*2 > n && s[n] != ' ' {
				return blank
			}
			return n
		}
		if s[n] == ' ' {
			blank = n
		}
		n += max(size, 1)
		used += cells
	}
	return n
}

// view returns the window, of exactly h lines of at most w cells.
func (l *long) view(w, h int) string {
	if w != l.w { // the row of the place means another text
		l.w, l.at.row = w, 0
	}
	if l.h = h; l.tail {
		l.end()
	}
	l.bound()
	out := make([]string, 0, h)
	for i, skip := l.at.part, l.at.row; i < len(l.parts) && len(out) < h; i, skip = i+1, 0 {
		for _, r := range l.rows(i)[skip:] {
			if len(out) == h {
				break
			}
			row := l.find.mark(l.t, l.t.cut(r, w))
			if !strings.Contains(row, "\x1b") {
				row = l.t.paint(l.parts[i].style, row)
			}
			out = append(out, row)
		}
	}
	for len(out) < h {
		out = append(out, "")
	}
	return strings.Join(out, "\n")
}

// move scrolls by n rows, down if it is positive.
func (l *long) move(n int) {
	l.tail = false
	if len(l.parts) == 0 {
		return
	}
	for ; n > 0; n-- {
		if l.at.row++; l.at.row >= len(l.rows(l.at.part)) {
			if l.at.part == len(l.parts)-1 {
				break
			}
			l.at = place2{l.at.part + 1, 0}
		}
	}
	for ; n < 0; n++ {
		switch {
		case l.at.row > 0:
			l.at.row--
		case l.at.part > 0:
			l.at.part--
			l.at.row = len(l.rows(l.at.part)) - 1
		}
	}
	l.bound()
}

func (l *long) page(n int) { l.move(n * max(l.h-1, 1)) }

func (l *long) home() { l.at, l.tail = place2{}, false }

// end shows the last rows.
func (l *long) end() {
	l.at = l.last()
}

// last returns the place from which the last rows fill the window.
func (l *long) last() place2 {
	room := max(l.h, 1)
	for i := len(l.parts) - 1; i >= 0; i-- {
		n := len(l.rows(i))
		if n >= room {
			return place2{i, n - room}
		}
		room -= n
	}
	return place2{}
}

// bound keeps the window in the text.
func (l *long) bound() {
	if len(l.parts) == 0 {
		l.at = place2{}
		return
	}
	if l.at.part >= len(l.parts) {
		l.at = l.last()
	}
	l.at.row = max(min(l.at.row, len(l.rows(l.at.part))-1), 0)
	if e := l.last(); l.at.part > e.part || l.at.part == e.part && l.at.row > e.row {
		l.at = e
	}
}
