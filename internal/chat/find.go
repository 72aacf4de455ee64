package chat

import (
	"strings"

	"rnix/internal/tui"
)

// finding is a search backwards through earlier messages.
type finding struct {
	query string
	at    int  // the place in the history of what was found; len(history) = nothing is looked for yet
	none  bool // nothing has the query in it
}

// press does what a key means while messages are searched, and reports false when the search is over and the key means what it always means.
func (f *finding) press(m *Model, name, text string) bool {
	switch name {
	case "ctrl+r":
		f.seek(m, f.at-1)
	case "backspace", "ctrl+h":
		if r := []rune(f.query); len(r) > 0 {
			f.look(m, string(r[:len(r)-1]))
		}
	case "esc", "ctrl+g":
		m.find = nil
	case "enter", "tab":
		f.choose(m)
	default:
		if text == "" {
			f.choose(m)
			return false
		}
		f.look(m, f.query+text)
	}
	return true
}

// look searches for another query, from the end.
func (f *finding) look(m *Model, query string) {
	f.query = strings.Join(strings.FieldsFunc(query, func(r rune) bool { return r == '\n' }), " ")
	f.at = len(m.ed.history)
	f.seek(m, f.at-1)
}

// seek goes to the last message up to a place that has the query in it, in any case; if there is none, it stays where it is.
func (f *finding) seek(m *Model, from int) {
	f.none = true
	if f.query == "" {
		f.none = false
		return
	}
	for i := min(from, len(m.ed.history)-1); i >= 0; i-- {
		if strings.Contains(strings.ToLower(m.ed.history[i]), strings.ToLower(f.query)) {
			f.at, f.none = i, false
			return
		}
	}
}

// choose ends the search, with what was found in the line.
func (f *finding) choose(m *Model) {
	m.find = nil
	if f.at < len(m.ed.history) {
		m.ed.set(m.ed.history[f.at])
		m.ed.place = f.at
	}
}

// view is the search on one line, and where the cursor is.
func (f *finding) view(m *Model) (line string, at int) {
	lead := "search: "
	if f.none {
		lead = "nothing earlier has: "
	}
	query := tui.Line(m.t, f.query)
	line = paint(m.t, bold, lead) + query
	at = tui.Cells(m.t, lead+query)
	if f.at < len(m.ed.history) {
		line += paint(m.t, dim, tui.Pick(m.t, "  › ", "  > ")+tui.Line(m.t, m.ed.history[f.at]))
	}
	return tui.Cut(m.t, line, m.w-1), at
}
