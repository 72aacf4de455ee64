package chat

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// settleTime is how long the size of a terminal that wraps anew must stay the same before it is taken for final. tmux wraps what it shows at each change, and says so to
// the programs in it at most every 250 ms (server-client.c, server_client_check_pane_resize). The rest is for a machine that is busy.
const settleTime = 400 * time.Millisecond

// sizing is the size of a terminal that wraps anew. While it changes, nothing is printed: rows are not where they were, and tmux takes some for one line that are none any
// more. Nor is anything drawn then, unless the cursor rests.
type sizing struct {
	known   bool // it was heard of once
	changes int
	changed bool     // it has not settled since
	frozen  bool     // what is drawn stays as it is until then
	last    tea.View // what is drawn
}

// changedMsg is a new size that may not be the last one.
type changedMsg tea.WindowSizeMsg

// settledMsg says that the size has not changed since.
type settledMsg struct {
	changes int
	size    tea.WindowSizeMsg
}

// rests reports whether the cursor rests where what is drawn begins: in a terminal that wraps anew, while the agent works and nothing is being typed. There it stays however
// often the terminal wraps, also before what was drawn last has arrived, as long as all of that has room on the screen. It is not shown there: the line that is typed shows where typing goes.
func rests(m *Model) bool {
	return m.term != nil && m.phase == working && m.ed.empty() && m.ask == nil && m.choice == nil && m.find == nil
}

// settle holds a new size back until it stays, unless the cursor rests: Bubble Tea draws at each that it hears of.
func settle(model tea.Model, msg tea.Msg) tea.Msg {
	m, ok := model.(*Model)
	if !ok || m.term == nil {
		return msg
	}
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		if m.size.known && (m.size.frozen || !rests(m)) {
			return changedMsg(msg)
		}
	case settledMsg:
		if msg.changes == m.size.changes && m.size.frozen {
			return msg.size
		}
	}
	return msg
}

// takeSize takes in the size of the terminal.
func takeSize(m *Model, msg tea.WindowSizeMsg) tea.Cmd {
	m.resize(msg.Width, msg.Height)
	begins, settles := !m.size.known, m.size.frozen
	m.size.known, m.size.frozen = true, false
	if m.term == nil || begins || settles {
		m.size.changed = false
		return nil
	}
	return awaitSettled(m, msg)
}

// awaitSettled waits until the size has not changed for a while.
func awaitSettled(m *Model, size tea.WindowSizeMsg) tea.Cmd {
	m.size.changed = true
	m.size.changes++
	return m.after(settleTime, settledMsg{m.size.changes, size})
}
