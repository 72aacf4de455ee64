package tui

import (
	"time"

	tea "charm.land/bubbletea/v2"
)

// frame is the least time between two drawings: thirty a second.
const frame = time.Second / 30

// paint holds the last drawing. There is a new one when something has changed and the last is old enough.
type paint struct {
	content string
	cursor  *tea.Cursor
	dirty   bool
	again   bool // a message that asks for a drawing is under way
	at      time.Time
}

// paintMsg is the moment of a drawing that had to wait.
type paintMsg struct{}

// soil says that something has changed, and returns the command that lets it be drawn if that is not now.
func (p *paint) soil(e *env) tea.Cmd {
	p.dirty = true
	wait := frame - e.now().Sub(p.at)
	if wait <= 0 || p.again {
		return nil
	}
	p.again = true
	return e.after(wait, paintMsg{})
}

func (p *paint) due() tea.Cmd {
	p.again = false
	p.at = time.Time{}
	return nil
}

// View draws what has changed.
func (m *Model) View() tea.View {
	now := m.env.now()
	if p := &m.paint; p.dirty && now.Sub(p.at) >= frame {
		p.content, p.cursor = m.draw()
		p.at, p.dirty = now, false
	}
	v := tea.View{Content: m.paint.content, Cursor: m.paint.cursor, AltScreen: true, WindowTitle: "rnix"}
	if m.mouse {
		v.MouseMode = tea.MouseModeCellMotion
	}
	return v
}
