package tui

import (
	"strings"

	tea "charm.land/bubbletea/v2"
)

// boxes is where things are on the screen. One of no size is not there.
type boxes struct{ list, bar, tabs, pane box }

// narrow is the width in cells under which the dashboard shows one side at a time.
const narrow = 64

// boxes divides the screen: a header above and the status line below, where there is room for them.
func (m *Model) boxes() boxes {
	y, h := 1, m.h-2
	if m.h < 4 {
		y, h = 0, m.h-1
	}
	h = max(h, 0)
	if m.screen == top {
		return boxes{list: box{0, y + 1, m.w, max(h-1-len(beneath(m)), 0)}} // under the names of the columns
	}
	both := m.w >= narrow && !m.wide
	var b boxes
	if both {
		w := min(max(m.w*2/5, 28), 56)
		b.list = box{0, y, w, h}
		b.bar = box{w, y, 1, h}
		b.pane = box{w + 2, y, m.w - w - 2, h}
	} else if m.focus == right || m.wide {
		b.pane = box{0, y, m.w, h}
	} else {
		b.list = box{0, y, m.w, h}
	}
	if b.pane.h > 2 {
		b.tabs = box{b.pane.x, b.pane.y, b.pane.w, 1}
		b.pane.y, b.pane.h = b.pane.y+1, b.pane.h-1
	}
	return b
}

// draw renders the whole screen: m.h lines of m.w cells at most.
func (m *Model) draw() (string, *tea.Cursor) {
	if m.w <= 0 || m.h <= 0 {
		return "", nil
	}
	t := m.env.t
	var lines []string
	if m.h >= 4 {
		lines = append(lines, header(m, m.w))
	}
	room := m.h - len(lines) - 1
	switch {
	case m.help != nil:
		lines = append(lines, strings.Split(m.help.view(m.w, room), "\n")...)
	case m.asking != nil:
		lines = append(lines, m.asking.view(m.w, room)...)
	case m.screen == top:
		under := beneath(m)
		lines = append(lines, tableLines(m, m.w, room-len(under))...)
		for len(lines) < m.h-1-len(under) {
			lines = append(lines, "")
		}
		for _, l := range under {
			lines = append(lines, t.paint(dim, l))
		}
	default:
		lines = append(lines, sides(m, room)...)
	}
	lines = lines[:min(len(lines), m.h-1)]
	for len(lines) < m.h-1 {
		lines = append(lines, "")
	}
	status, at := statusLine(m, m.w)
	lines = append(lines, status)
	for i, l := range lines {
		lines[i] = t.cut(l, m.w)
	}
	if at < 0 {
		return strings.Join(lines, "\n"), nil
	}
	return strings.Join(lines, "\n"), tea.NewCursor(min(at, m.w-1), m.h-1)
}

// beneath is what stands below the table of top: what the providers do, and what the chosen process has used with others. Where there is little room there is nothing.
func beneath(m *Model) []string {
	if m.h < 10 {
		return nil
	}
	return append(m.env.traffic.lines(), m.env.kin.lines()...)
}

// sides renders the dashboard's two sides.
func sides(m *Model, h int) []string {
	t, b := m.env.t, m.boxes()
	var l, r []string
	if b.list.w > 0 {
		l = treeSide(m, b.list.w, h)
	}
	if b.pane.w > 0 {
		if b.tabs.h > 0 {
			r = append(r, tabs(m, b.tabs.w))
		}
		r = append(r, t.fit(m.pane().view(b.pane.w, b.pane.h), b.pane.w, b.pane.h)...)
	}
	out := make([]string, h)
	for i := range out {
		switch {
		case b.bar.w > 0:
			bar := t.paint(dim, t.pick("│", "|"))
			out[i] = at(l, i, b.list.w) + bar + " " + at(r, i, 0)
		case b.list.w > 0:
			out[i] = at(l, i, 0)
		default:
			out[i] = at(r, i, 0)
		}
	}
	return out
}

// at returns a line, or blanks where there is none.
func at(lines []string, i, w int) string {
	if i < len(lines) {
		return lines[i]
	}
	return blanks(w)
}

// paneDigits are the keys of the panes.
const paneDigits = "1234567890-"

// tabText is how a pane is called among the others.
func tabText(m *Model, i int) string {
	digit := " "
	if i < len(paneDigits) {
		digit = paneDigits[i : i+1]
	}
	return " " + digit + " " + m.panes[i].title() + " "
}

// tabRange returns the panes whose names have room in w cells, from one to before another: the first ones, or those up to the one in sight. A cell at each
// side is for the mark that there are more.
func tabRange(m *Model, w int) (from, to int) {
	width := func(i int) int { return m.env.t.cells(tabText(m, i)) }
	used := 2
	for to = 0; to <= m.cur; to++ {
		used += width(to)
	}
	for ; used > w && from < m.cur; from++ {
		used -= width(from)
	}
	for ; to < len(m.panes) && used+width(to) <= w; to++ {
		used += width(to)
	}
	return from, to
}

// tabs renders the names of the panes.
func tabs(m *Model, w int) string {
	t := m.env.t
	var b strings.Builder
	from, to := tabRange(m, w)
	mark := func(more bool, sign, ascii string) {
		if !more {
			sign, ascii = " ", " "
		}
		b.WriteString(t.paint(dim, Pick(t, sign, ascii)))
	}
	mark(from > 0, "‹", "<")
	for i := from; i < to; i++ {
		s := tabText(m, i)
		switch {
		case i == m.cur && m.focus == right:
			b.WriteString(t.paint(reverse, s))
		case i == m.cur:
			b.WriteString(t.paint(bold, s))
		default:
			b.WriteString(t.paint(dim, s))
		}
	}
	mark(to < len(m.panes), "›", ">")
	return t.pad(b.String(), w)
}

// tabAt returns the index of the pane whose name is at a cell; -1 = none.
func tabAt(m *Model, x, width int) int {
	from, to := tabRange(m, width)
	switch {
	case x == 0 && from > 0:
		return from - 1
	case x == 0:
		return -1
	}
	x--
	for i := from; i < to; i++ {
		w := m.env.t.cells(tabText(m, i))
		if x < w {
			return i
		}
		x -= w
	}
	if x == 0 && to < len(m.panes) {
		return to
	}
	return -1
}
