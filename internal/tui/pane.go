package tui

import (
	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
	"rnix/types"
)

// pane is one of the things that the right side of the dashboard shows of a process. It is used by the goroutine of the
// program only, and does nothing slow: what has to be asked is a command (ask), whose answer comes to update.
type pane interface {
	// title is the name, one word.
	title() string
	// show says which process is to be shown: the one that is chosen, or nil for none. It is called when another one is
	// chosen, when the pane comes to sight, and when the daemon tells of a change of the process; so it has to look
	// whether p.UUID is another one. p does not change, and stays valid.
	show(p *ipc.Proc) tea.Cmd
	// update takes a message: answers to what the pane has asked come to all panes, also to those out of sight, so they
	// have a type of their own and say for which process they are. Keys do not come here but to keys.
	update(msg tea.Msg) tea.Cmd
	// view returns the content, of at most h lines of at most w cells each. Text of agents has passed through Theme.clean or
	// Theme.line. It is called for each drawing, and only while the pane is in sight: it takes well under a millisecond.
	view(w, h int) string
	// keys are the keys that the pane has for itself, while it has the focus; with place = inPane.
	keys() []binding
}

// What a pane may have besides.
type (
	// scroller is a pane that scrolls: all the keys for that, the wheel, and search work on the long text that it returns.
	scroller interface{ text() *long }
	// stepper is a pane that shows one step: F forks from there. 0 = the last one.
	stepper interface{ shownStep() int }
	// loader is a pane that asks for what is in sight. load is called after each message while the pane is in sight, so it returns nil
	// at once where nothing is missing.
	loader interface{ load() tea.Cmd }
	// hider is a pane that has work to stop when it goes out of sight or the program shows another pane.
	hider interface{ hide() }
)

// newPanes makes the panes in the order of their numbers. A new one is a line here.
func newPanes(e *env) []pane {
	return []pane{
		newDetailPane(e),
		newStepsPane(e),
		newLogPane(e),
		newTalkPane(e),
		newFilesPane(e),
		newCtxPane(e),
		newComposePane(e),
		newCostPane(e),
		newMailPane(e),
		newLineagePane(e),
		newTracePane(e),
	}
}

// paneTitles are the names of the panes, in their order.
func paneTitles() (out []string) {
	for _, p := range newPanes(&env{t: &Theme{}}) {
		out = append(out, p.title())
	}
	return out
}

// side is where keys go in the dashboard.
type side int

const (
	left  side = iota // the processes
	right             // the pane
)

// shownIn is what the pane in sight was told last.
type shownIn struct {
	pane int
	id   types.UUID
	ver  uint64
}

// pane returns the pane in sight.
func (m *Model) pane() pane { return m.panes[m.cur] }

// text returns the long text that the keys for scrolling and searching move; nil = there is none.
func (m *Model) text() *long {
	switch {
	case m.help != nil:
		return m.help
	case m.asking != nil:
		return m.asking.long
	}
	if s, ok := m.pane().(scroller); ok && m.screen == dashboard {
		return s.text()
	}
	return nil
}

// turnTo shows the pane of an index.
func turnTo(m *Model, i int) {
	if i < 0 || i >= len(m.panes) || i == m.cur {
		return
	}
	if h, ok := m.pane().(hider); ok {
		h.hide()
	}
	m.cur = i
}

// loads returns what the pane in sight has to ask for.
func (m *Model) loads() tea.Cmd {
	if l, ok := m.pane().(loader); ok && m.screen == dashboard {
		return l.load()
	}
	return nil
}

// tell says to the pane in sight what is chosen, if it does not know that yet.
func (m *Model) tell() tea.Cmd {
	if m.screen != dashboard {
		return nil
	}
	now := shownIn{pane: m.cur}
	p := m.list.chosen()
	if p != nil {
		now.id, now.ver = p.UUID, p.ver
	}
	if m.told != nil && *m.told == now {
		return nil
	}
	m.told = &now
	if p == nil {
		return m.pane().show(nil)
	}
	return m.pane().show(&p.Proc)
}
