package tui

import tea "charm.land/bubbletea/v2"

// wheelLines is how many lines a turn of the wheel is.
const wheelLines = 3

// click chooses what is under the mouse.
func click(m *Model, e tea.Mouse) tea.Cmd {
	if e.Button != tea.MouseLeft || m.ask != nil || m.input != nil || m.help != nil || m.asking != nil {
		return nil
	}
	b := m.boxes()
	switch {
	case b.list.has(e.X, e.Y):
		m.focus = left
		if i := m.list.top + e.Y - b.list.y; i < len(m.list.entries) {
			m.list.choose(i)
		}
	case b.pane.has(e.X, e.Y):
		m.focus = right
		if c := m.picks(); c != nil {
			if i := e.Y - b.pane.y - c.above; i >= 0 && c.top+i < c.n {
				c.choose(c.top + i)
			}
		}
	case b.tabs.has(e.X, e.Y):
		if i := tabAt(m, e.X-b.tabs.x, b.tabs.w); i >= 0 {
			turnTo(m, i)
		}
	}
	return nil
}

// wheel scrolls what is under the mouse.
func wheel(m *Model, e tea.Mouse) tea.Cmd {
	n := wheelLines
	switch e.Button {
	case tea.MouseWheelUp:
		n = -n
	case tea.MouseWheelDown:
	default:
		return nil
	}
	b := m.boxes()
	switch {
	case m.help != nil:
		m.help.move(n)
	case m.asking != nil:
		m.asking.long.move(n)
	case b.list.has(e.X, e.Y):
		m.list.wheel(n)
	case b.pane.has(e.X, e.Y):
		if c := m.picks(); c != nil {
			c.choose(c.at + n)
		} else if l := m.text(); l != nil {
			l.move(n)
		}
	}
	return nil
}

// box is a part of the screen, in cells.
type box struct{ x, y, w, h int }

func (b box) has(x, y int) bool { return x >= b.x && x < b.x+b.w && y >= b.y && y < b.y+b.h }
