package tui

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"
)

// place is where a key means something. What stands first in a list of places wins.
type place string

// The places. Their values are headings in the help.
const (
	inQuestion place = "In a question"
	inInput    place = "While you type"
	inHelp     place = "In this help"
	inAsk      place = "In what you are asked"
	inPane     place = "In this pane" // keys of the pane's own
	inText     place = "In the right side"
	inList     place = "In the list"
	inTop      place = "In top"
	inDash     place = "In the dashboard"
	anywhere   place = "Anywhere"
)

// binding is a line of the one table of keys: the help, the hints and the documentation come from it.
type binding struct {
	keys  []string // as tea.KeyPressMsg writes them; the first is the usual one
	place place
	what  string // what it does, in words, as: "stop the process"
	hint  string // one word for the status line; empty = only in the help
	do    func(*Model) tea.Cmd
}

// bindings returns the table, without the keys that panes have of their own. Where there is no room for all hints, the first ones are shown.
func bindings() []binding {
	return slices.Concat(moveKeys(), actionKeys(), listKeys(), screenKeys(), textKeys(), inputKeys(), askKeys(), helpKeys())
}

func key(p place, keys, what, hint string, do func(*Model) tea.Cmd) binding {
	return binding{strings.Fields(keys), p, what, hint, do}
}

// act makes an action of what needs no command.
func act(f func(*Model)) func(*Model) tea.Cmd {
	return func(m *Model) tea.Cmd { f(m); return nil }
}

// places returns where the program is, the narrowest place first.
func (m *Model) places() []place {
	switch {
	case m.ask != nil:
		return []place{inQuestion}
	case m.input != nil:
		return []place{inInput}
	case m.help != nil:
		return []place{inHelp, inText, anywhere}
	case m.asking != nil:
		return []place{inAsk, anywhere}
	case m.screen == top:
		return []place{inTop, inList, anywhere}
	case m.focus == right:
		return []place{inPane, inText, inDash, anywhere}
	}
	return []place{inList, inDash, anywhere}
}

// at returns the bindings of a place.
func (m *Model) at(p place) []binding {
	switch {
	case p == inPane:
		return m.pane().keys()
	case p == inQuestion && m.ask != nil:
		return m.ask.answers
	}
	var out []binding
	for _, b := range m.keys {
		if b.place == p {
			out = append(out, b)
		}
	}
	return out
}

// press does what a key means where the program is.
func press(m *Model, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if m.note.until.IsZero() {
		m.note = note{}
	}
	for _, p := range m.places() {
		for _, b := range m.at(p) {
			if slices.Contains(b.keys, name) {
				return b.do(m)
			}
		}
	}
	if m.ask == nil && m.input != nil && k.Text != "" {
		m.input.insert(m.env.t, k.Text)
		m.input.changed(m)
	}
	return nil
}

// keyName is a key as people read it.
func keyName(t *Theme, k string) string {
	if name, ok := map[string]string{"up": t.pick("↑", "up"), "down": t.pick("↓", "down"), "left": t.pick("←", "left"), "right": t.pick("→", "right"),
		"enter": "Enter", "esc": "Esc", "tab": "Tab", "shift+tab": "Shift+Tab", "pgup": "PgUp", "pgdown": "PgDn", "home": "Home", "end": "End", "space": "Space"}[k]; ok {
		return name
	}
	if rest, ok := strings.CutPrefix(k, "ctrl+"); ok {
		return "Ctrl+" + strings.ToUpper(rest)
	}
	return k
}
