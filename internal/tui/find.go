package tui

import "strings"

// finder is what is looked for. Small letters find capital ones too.
type finder struct{ text string }

// in returns where s has what is looked for, from byte from on, or -1.
func (f finder) in(s string, from int) int {
	if f.text == "" || from > len(s) {
		return -1
	}
	s = s[from:]
	if strings.ToLower(f.text) == f.text {
		if low := strings.ToLower(s); len(low) == len(s) {
			s = low
		}
	}
	if i := strings.Index(s, f.text); i >= 0 {
		return from + i
	}
	return -1
}

// mark returns a clean row with what is looked for standing out.
func (f finder) mark(t *Theme, row string) string {
	i := f.in(row, 0)
	if i < 0 {
		return row
	}
	var b strings.Builder
	from := 0
	for ; i >= 0; i = f.in(row, from) {
		end := i + len(f.text)
		b.WriteString(row[from:i] + t.paint(reverse, row[i:end]))
		from = end
	}
	return b.String() + row[from:]
}

// searchFor makes text what is looked for, and goes to where it is first, from the window's first row on.
func (l *long) search(text string) bool {
	l.find = finder{l.t.line(text)}
	if text == "" || len(l.parts) == 0 {
		return text == ""
	}
	return l.seek(l.at.part, l.offset(l.at), 1)
}

// next goes to the next place of what is looked for, or to the one before. It begins again at the other end.
func (l *long) next(by int) bool {
	if l.find.text == "" || len(l.parts) == 0 {
		return false
	}
	if by > 0 {
		rows := l.rows(l.at.part)
		return l.seek(l.at.part, l.offset(l.at)+len(rows[min(l.at.row, len(rows)-1)]), 1)
	}
	return l.seek(l.at.part, l.offset(l.at), -1)
}

// offset returns the byte of its part at which a row begins.
func (l *long) offset(p place2) int {
	n := 0
	s := l.parts[p.part].text
	for i, r := range l.rows(p.part) {
		n = strings.Index(s[n:], r) + n
		if i == p.row {
			return n
		}
		n += len(r)
	}
	return n
}

// seek looks through all parts once, from a byte of one of them on, or down to it, and shows what it finds.
func (l *long) seek(start, from, by int) bool {
	n := len(l.parts)
	for k := range n + 1 {
		i := ((start+by*k)%n + n) % n
		at := -1
		switch {
		case by > 0 && k == 0:
			at = l.foundIn(i, from)
		case by > 0:
			at = l.foundIn(i, 0)
		default:
			limit := len(l.parts[i].text) + 1
			if k == 0 {
				limit = from
			}
			for j := l.foundIn(i, 0); j >= 0 && j < limit; j = l.foundIn(i, j+1) {
				at = j
			}
		}
		if at >= 0 {
			l.tail = false
			l.at = l.placeOf(i, at)
			l.bound()
			return true
		}
	}
	return false
}

// foundIn looks in a part, and in the beginning of the next where the line goes on there.
func (l *long) foundIn(i, from int) int {
	s := l.parts[i].text
	if l.parts[i].more && i+1 < len(l.parts) {
		next := l.parts[i+1].text
		s += next[:min(len(next), max(len(l.find.text)-1, 0))]
	}
	return l.find.in(s, from)
}

// placeOf returns the row that has a byte of a part.
func (l *long) placeOf(i, at int) place2 {
	row := 0
	for k := range l.rows(i) {
		if l.offset(place2{i, k}) > at {
			break
		}
		row = k
	}
	return place2{i, row}
}
