package tui

import (
	"fmt"
	"slices"
	"strings"

	"rnix/types"
)

// header is the first line: what this is, and the totals of all.
func header(m *Model, w int) string {
	t := m.env.t
	left := "rnix"
	if m.screen == top {
		left = "rnix top"
	}
	parts := totals(m.rows.totals)
	if m.all {
		parts = totals(m.rows.listed())
	}
	mid := strings.Join(parts, t.dot())
	switch {
	case m.rows.hidden > 0:
		mid += t.dot() + number(m.rows.hidden) + " more on disk"
	case !m.rows.whole:
		mid = "..."
	}
	if asks := m.rows.asksText(); asks != "" {
		mid = t.paint(yellow, asks) + t.dot() + mid
	}
	right := ""
	if m.list.filter != "" {
		right = "filter: " + m.list.filter
	} else if m.all {
		right = "history"
	}
	if n := w - t.cells(left) - 3 - t.cells(mid) - 2; t.cells(right) > n {
		right = t.cut(right, max(n, 0))
	}
	s := t.pad(t.paint(bold, left)+"   "+mid, w-t.cells(right)) + t.paint(yellow, right)
	return s
}

// statusLine is the last line: what is typed, asked or said, else what the keys do. It returns the cell of the cursor,
// or -1.
func statusLine(m *Model, w int) (string, int) {
	t := m.env.t
	switch {
	case m.ask != nil:
		s := t.paint(bold, m.ask.text) + "  "
		for _, b := range m.ask.answers {
			s += t.paint(cyan, b.keys[0]) + " " + b.hint + "  "
		}
		return s, -1
	case m.input != nil:
		return m.input.view(t, w)
	case m.link.err != nil:
		return t.paint(red, lostText(m)), -1
	case m.note.text != "":
		if m.note.bad {
			return t.paint(red, m.note.text), -1
		}
		return m.note.text, -1
	}
	return hints(m, w), -1
}

// lostText says that the daemon does not answer.
func lostText(m *Model) string {
	why := m.env.t.line(errorText(m.link.err))
	if c := types.CodeOf(m.link.err); c == types.ErrUnavailable || c == types.ErrDisconnected {
		why = "start it elsewhere: rnix daemon start"
	}
	return fmt.Sprintf("the daemon is gone since %s; %s (the screen shows what was known then)", m.link.since.Local().Format("15:04:05"), why)
}

// hints are the keys of this place that have a word for it.
func hints(m *Model, w int) string {
	t := m.env.t
	var parts []string
	used := -2
	seen := map[string]bool{}
	places := m.places()
	for _, p := range append([]place{anywhere}, places...) {
		if p == anywhere && !slices.Contains(places, anywhere) {
			continue
		}
		for _, k := range m.at(p) {
			if k.hint == "" || seen[k.keys[0]] {
				continue
			}
			seen[k.keys[0]] = true
			name := keyName(t, k.keys[0])
			n := t.cells(name) + 1 + t.cells(k.hint) + 2
			if used+n > w {
				return strings.Join(parts, "  ")
			}
			used += n
			parts = append(parts, t.paint(cyan, name)+" "+t.paint(dim, k.hint))
		}
	}
	return strings.Join(parts, "  ")
}
