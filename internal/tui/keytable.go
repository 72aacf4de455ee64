package tui

import (
	"strconv"

	tea "charm.land/bubbletea/v2"
)

// moveKeys are those that move in the list.
func moveKeys() []binding {
	return []binding{
		key(inList, "down j", "the next process", "", act(func(m *Model) { m.list.move(1) })),
		key(inList, "up k", "the process before", "", act(func(m *Model) { m.list.move(-1) })),
		key(inList, "pgdown space", "a page down", "", act(func(m *Model) { m.list.move(max(m.list.h-1, 1)) })),
		key(inList, "pgup", "a page up", "", act(func(m *Model) { m.list.move(-max(m.list.h-1, 1)) })),
		key(inList, "home g", "the first process", "", act(func(m *Model) { m.list.choose(0) })),
		key(inList, "end G", "the last process", "", act(func(m *Model) { m.list.choose(len(m.list.entries) - 1) })),
	}
}

// listKeys are those that change what the list shows.
func listKeys() []binding {
	return []binding{
		key(inList, "/", "search: name, intent, state, PID, beginning of a UUID", "search", askSearch),
		key(inList, "n", "the next place that was searched for", "", act(func(m *Model) { searchAgain(m, 1) })),
		key(inList, "N", "the place before", "", act(func(m *Model) { searchAgain(m, -1) })),
		key(inList, "f", "filter: only what has a text, and what stands above it", "filter", askFilter),
		key(inList, "t", "a tree, or flat", "tree", act(func(m *Model) { m.list.flat = !m.list.flat })),
		key(inList, "o", "sort by the next column", "sort", act(nextSort)),
		key(inList, "O", "sort the other way round", "", act(func(m *Model) { m.list.desc = !m.list.desc })),
		key(inList, "H", "history: ended processes too, or not", "history", toggleAll),
	}
}

// screenKeys are those that go from one place to another.
func screenKeys() []binding {
	out := []binding{
		key(inTop, "enter right l", "open the dashboard on the process", "open", act(openDashboard)),
		key(inList, "esc", "take the filter away; back to top, if you came from there", "", act(escape)),
		key(inDash, "tab", "the next pane", "", act(func(m *Model) { turnTo(m, (m.cur+1)%len(m.panes)) })),
		key(inDash, "shift+tab", "the pane before", "", act(func(m *Model) { turnTo(m, (m.cur+len(m.panes)-1)%len(m.panes)) })),
		key(inText, "esc left h", "back to the list", "", act(leaveText)),
		key(inDash, "enter right l", "into the right side", "", act(func(m *Model) { m.focus = right })),
		key(inDash, "z", "the right side alone, or both", "", act(toggleWide)),
	}
	titles := paneTitles()
	for i := range len(paneDigits) {
		what := "pane " + strconv.Itoa(i+1)
		if i < len(titles) {
			what += ": " + titles[i]
		}
		out = append(out, key(inDash, paneDigits[i:i+1], what, "", act(func(m *Model) { turnTo(m, i) })))
	}
	return out
}

// textKeys are those that move in a long text.
func textKeys() []binding {
	text := func(f func(*long)) func(*Model) tea.Cmd {
		return act(func(m *Model) {
			if l := m.text(); l != nil {
				f(l)
			}
		})
	}
	return []binding{
		key(inText, "down j", "a line down", "", text(func(l *long) { l.move(1) })),
		key(inText, "up k", "a line up", "", text(func(l *long) { l.move(-1) })),
		key(inText, "pgdown space", "a page down", "", text(func(l *long) { l.page(1) })),
		key(inText, "pgup", "a page up", "", text(func(l *long) { l.page(-1) })),
		key(inText, "home g", "the beginning", "", text((*long).home)),
		key(inText, "end G", "the end", "", text((*long).end)),
		key(inText, "/", "search", "search", askSearch),
		key(inText, "n", "the next place", "", act(func(m *Model) { searchAgain(m, 1) })),
		key(inText, "N", "the place before", "", act(func(m *Model) { searchAgain(m, -1) })),
		key(inDash, "ctrl+d", "the right side a page down", "", text(func(l *long) { l.page(1) })),
		key(inDash, "ctrl+u", "the right side a page up", "", text(func(l *long) { l.page(-1) })),
	}
}

// helpKeys are those that are good everywhere.
func helpKeys() []binding {
	return []binding{
		key(inHelp, "? q esc", "back", "back", act(func(m *Model) { m.help = nil })),
		key(anywhere, "?", "the keys of this place", "help", act(openHelp)),
		key(anywhere, "m", "the mouse on, or off: then it selects text", "", act(toggleMouse)),
		key(anywhere, "q ctrl+c", "leave; agents run on", "quit", func(m *Model) tea.Cmd { return tea.Quit }),
	}
}
