package tui

import (
	"slices"

	tea "charm.land/bubbletea/v2"
)

// What keys do that ask nobody.

func askSearch(m *Model) tea.Cmd {
	m.input = &input{label: "/", live: searchFor, leave: func(m *Model) { searchFor(m, "") }, enter: func(m *Model, text string) tea.Cmd {
		searchFor(m, text)
		return nil
	}}
	return nil
}

// inText reports whether searching and scrolling are those of a long text.
func (m *Model) inText() bool {
	return m.help != nil || m.screen == dashboard && m.focus == right
}

// searchFor looks for a text where the focus is.
func searchFor(m *Model, text string) {
	found := true
	if c := m.picks(); m.inText() && c != nil {
		found = c.search(m.env.t.line(text))
	} else if l := m.text(); m.inText() && l != nil {
		found = l.search(text)
	} else if !m.inText() {
		m.list.find = finder{m.env.t.line(text)}
		found = text == "" || m.list.search(0)
	}
	m.note = note{}
	if !found {
		m.say("nothing has " + text)
	}
}

// searchAgain goes to the next place of what was searched for.
func searchAgain(m *Model, by int) {
	found, text := false, m.list.find.text
	if c := m.picks(); m.inText() && c != nil {
		found, text = c.next(by), c.find.text
	} else if l := m.text(); m.inText() && l != nil {
		found, text = l.next(by), l.find.text
	} else if !m.inText() && text != "" {
		found = m.list.search(by)
	}
	switch {
	case text == "":
		m.say("nothing was searched for; / searches")
	case !found:
		m.say("nothing has " + text)
	}
}

func askFilter(m *Model) tea.Cmd {
	old := m.list.filter
	in := &input{label: "filter:", live: setFilter, leave: func(m *Model) { setFilter(m, old) }, enter: func(m *Model, text string) tea.Cmd {
		setFilter(m, text)
		return nil
	}}
	in.insert(m.env.t, old)
	m.input = in
	return nil
}

func setFilter(m *Model, text string) { m.list.filter = m.env.t.line(text) }

// nextSort sorts by the next column. Numbers begin with the largest.
func nextSort(m *Model) {
	i := slices.Index(sortKeys, m.list.sort)
	m.list.sort = sortKeys[(i+1)%len(sortKeys)]
	m.list.desc = slices.Contains([]sortKey{byStep, byTokens, byCost, byElapsed, byMemory}, m.list.sort)
}

// toggleAll opens the stream anew, with ended processes or without.
func toggleAll(m *Model) tea.Cmd {
	m.all = !m.all
	if m.all {
		m.say("with ended processes")
	} else {
		m.say("without ended processes")
	}
	return m.link.open(m)
}

func openDashboard(m *Model) {
	m.screen, m.under, m.focus, m.told = dashboard, true, left, nil
}

func escape(m *Model) {
	switch {
	case m.list.filter != "":
		m.list.filter = ""
	case m.list.find.text != "":
		m.list.find = finder{}
	case m.screen == dashboard && m.under:
		if h, ok := m.pane().(hider); ok {
			h.hide()
		}
		m.screen = top
	}
}

func leaveText(m *Model) {
	if m.help != nil {
		m.help = nil
		return
	}
	if c := m.picks(); c != nil && c.find.text != "" {
		c.find = finder{}
		return
	}
	if l := m.text(); l != nil && l.find.text != "" {
		l.find = finder{}
		return
	}
	m.focus, m.wide = left, false
}

func toggleWide(m *Model) {
	m.wide = !m.wide
	if m.wide {
		m.focus = right
	}
}

func toggleMouse(m *Model) {
	m.mouse = !m.mouse
	if m.mouse {
		m.say("the mouse chooses and scrolls")
	} else {
		m.say("the mouse selects text")
	}
}
