package chat

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/internal/tui"
	"rnix/ipc"
)

// choice is a question of the program: yes or no, or one process of a list.
type choice struct {
	lines []string // what is asked; clean
	yes   func(*Model) tea.Cmd

	list   []ipc.Proc
	pick   func(*Model, *ipc.Proc) tea.Cmd
	filter string
	at     int
}

// confirm asks whether something is to be done.
func confirm(lines []string, yes func(*Model) tea.Cmd) *choice {
	return &choice{lines: lines, yes: yes}
}

// pickFrom lets a person choose a process.
func pickFrom(list []ipc.Proc, pick func(*Model, *ipc.Proc) tea.Cmd) *choice {
	return &choice{list: list, pick: pick}
}

// Conversations returns the processes of a list to which a person may want to go: agents that no other process has started, those that changed last first.
func Conversations(procs []ipc.Proc) []ipc.Proc {
	out := slices.DeleteFunc(slices.Clone(procs), func(p ipc.Proc) bool {
		return p.Kind != "" || p.PPID != 0 || p.ParentUUID != (ipc.Proc{}.UUID) || p.State == "archived"
	})
	slices.SortStableFunc(out, func(a, b ipc.Proc) int { return cmp.Compare(changed(&b), changed(&a)) })
	return out
}

func changed(p *ipc.Proc) int64 {
	if p.UpdatedAt.IsZero() {
		return p.CreatedAt.UnixNano()
	}
	return p.UpdatedAt.UnixNano()
}

// found returns the processes that the filter lets through.
func (c *choice) found(t *tui.Theme) (out []*ipc.Proc) {
	for i := range c.list {
		p := &c.list[i]
		text := strings.ToLower(tui.Line(t, p.PID.String()+" "+p.Name+" "+p.Model+" "+p.Provider+" "+p.Intent+" "+p.State+" "+p.UUID.String()))
		if !slices.ContainsFunc(strings.Fields(strings.ToLower(c.filter)), func(w string) bool { return !strings.Contains(text, w) }) {
			out = append(out, p)
		}
	}
	return out
}

// press does what a key means while something is asked.
func (c *choice) press(m *Model, k tea.KeyPressMsg) tea.Cmd {
	name := k.String()
	if c.yes != nil {
		switch name {
		case "y", "enter":
			m.choice = nil
			return c.yes(m)
		case "n", "esc", "q":
			m.choice = nil
		}
		return nil
	}
	found := c.found(m.t)
	switch name {
	case "esc":
		if m.choice = nil; m.o.Choose && m.id == (ipc.Proc{}.UUID) {
			return tea.Quit
		}
	case "enter":
		if len(found) == 0 {
			return nil
		}
		m.choice = nil
		return c.pick(m, found[min(c.at, len(found)-1)])
	case "up", "ctrl+p":
		c.at = max(c.at-1, 0)
	case "down", "ctrl+n":
		c.at = max(min(c.at+1, len(found)-1), 0)
	case "backspace":
		if r := []rune(c.filter); len(r) > 0 {
			c.filter, c.at = string(r[:len(r)-1]), 0
		}
	default:
		c.filter, c.at = c.filter+tui.Line(m.t, k.Text), 0
		if k.Text == " " {
			c.filter += " "
		}
	}
	return nil
}

// view draws it in at most n lines.
func (c *choice) view(m *Model, n int) []string {
	t := m.t
	key := func(k, what string) string { return paint(t, cyan, k) + " " + what + "  " }
	if c.yes != nil {
		return append(slices.Clone(c.lines[:min(len(c.lines), n-1)]), key("y", "yes")+key("n", "no"))
	}
	found := c.found(t)
	c.at = max(min(c.at, len(found)-1), 0)
	out := []string{paint(t, bold, "which conversation? ") + c.filter + paint(t, dim, tui.Pick(t, "▏", "_"))}
	room := max(n-2, 1)
	from := max(min(c.at-room/2, len(found)-room), 0)
	for i, p := range found[from:min(from+room, len(found))] {
		lead, a := "  ", attr(0)
		if i+from == c.at {
			lead, a = paint(t, cyan|bold, tui.Pick(t, "› ", "> ")), bold
		}
		out = append(out, lead+paint(t, a, tui.Cut(t, pickLine(t, p, debug.Age(max(m.now().Sub(timeOf(p)), 0))), m.w-4)))
	}
	if len(found) == 0 {
		out = append(out, paint(t, dim, "  none has this in it"))
	}
	return append(out, key("Enter", "choose")+key("Esc", "none")+paint(t, dim, "type to filter"))
}

func timeOf(p *ipc.Proc) time.Time { return time.Unix(0, changed(p)) }

// pickModel is how wide the model of a process is in a list, in cells.
const pickModel = 18

// pickLine is a process in a list.
func pickLine(t *tui.Theme, p *ipc.Proc, age string) string {
	state := p.State
	if p.Exit != nil && p.Exit.Code == 0 {
		state = "done"
	} else if p.Exit != nil {
		state = "ended"
	}
	model := cmp.Or(p.Model, p.Provider)
	return fmt.Sprintf("%6s %-9s %8s  %s  %s%s", p.PID, state, age, tui.Pad(t, tui.Cut(t, tui.Line(t, model), pickModel), pickModel), tui.Line(t, p.Task()), with("  ", tui.Line(t, p.Name)))
}
