package tui

import (
	"strings"

	"rnix/debug"
)

// treeSide renders the left side of the dashboard: a badge, the name, and where the process is.
func treeSide(m *Model, w, h int) []string {
	t, now := m.env.t, m.env.now()
	entries, first := m.list.shown(h)
	out := make([]string, 0, h)
	digits := 2
	for i := range entries {
		digits = max(digits, len(entries[i].PID.String()))
	}
	for i := range entries {
		e := &entries[i]
		sign, st := t.badge(e.row)
		tail := debug.Age(e.elapsed(now))
		if e.Kind == "" {
			tail = "step " + stepText(&e.Proc) + " " + t.right(tail, 6)
		}
		if w < 40 {
			tail = debug.Age(e.elapsed(now))
		}
		head := t.right(e.PID.String(), digits) + " " + t.branch(e)
		room := w - t.cells(head) - t.cells(sign) - t.cells(tail) - 2
		if room < 8 {
			room, tail = room+t.cells(tail), ""
		}
		name := t.pad(t.name(e.row), max(room, 0))
		out = append(out, rowLine(m, first+i, e, head, sign, st, name+" "+tail, w))
	}
	if len(entries) == 0 && h > 0 {
		out = append(out, t.pad(nothing(m), w))
	}
	for len(out) < h {
		out = append(out, blanks(w))
	}
	return out
}

// rowLine paints a line: the one that is chosen stands out as a whole.
func rowLine(m *Model, i int, e *entry, head, sign string, st style, rest string, w int) string {
	t := m.env.t
	if i == m.list.at {
		st := reverse
		if m.screen == dashboard && m.focus == right {
			st = bold
		}
		return t.paint(st, t.pad(head+sign+rest, w))
	}
	body := m.list.find.mark(t, strings.TrimRight(t.cut(rest, max(w-t.cells(head)-t.cells(sign), 0)), " "))
	switch {
	case e.ended() || e.gone || !e.match:
		body = t.paint(dim, body)
	case e.waitsForAnswer():
		body = t.paint(yellow, body)
	}
	if e.ended() || e.gone || !e.match {
		head = t.paint(dim, head)
	}
	return t.pad(head+t.paint(st, sign)+body, w)
}

// nothing says why the list is empty.
func nothing(m *Model) string {
	switch {
	case !m.rows.whole:
		return "asking the daemon ..."
	case m.list.filter != "":
		return "nothing has " + m.list.filter + "; Esc takes the filter away"
	case m.all:
		return "there are no processes, and none on disk"
	}
	return "no processes; H shows those that have ended"
}
