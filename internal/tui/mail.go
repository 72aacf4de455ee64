package tui

import (
	"fmt"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/event"
	"rnix/ipc"
)

// mailPane shows the groups of the system, and the messages that a process was sent.
type mailPane struct {
	e      *env
	sub    subject
	ear    listener
	groups *fetch[ipc.Empty, ipc.GroupsResponse]
	box    *fetch[ipc.MailboxRequest, ipc.MailboxResponse] // what waits
	stale  bool                                            // a message was sent or taken since it was asked for
	lines  []string
	gone   int
	long   *long
}

// mailLines is how many messages are kept.
const mailLines = 1000

func newMailPane(e *env) *mailPane {
	return &mailPane{e: e, ear: listener{e: e}, groups: newFetch(e, ipc.ListGroups), box: newFetch(e, ipc.Mailbox), long: newLong(e.t)}
}

func (p *mailPane) title() string   { return "Mail" }
func (p *mailPane) text() *long     { return p.long }
func (p *mailPane) hide()           { p.ear.close() }
func (p *mailPane) keys() []binding { return nil }

func (p *mailPane) show(proc *ipc.Proc) tea.Cmd {
	before := p.sub.state
	other, changed := p.sub.take(proc)
	if p.sub.none() {
		p.ear.close()
		return nil
	}
	var cmds []tea.Cmd
	if other {
		p.box.forget() // before it is asked for: what is asked about an older one is not listened to
	}
	if changed || p.groups.err != nil {
		cmds = append(cmds, p.groups.ask(ipc.Empty{}), p.look())
	}
	switch {
	case other:
		p.lines, p.gone, p.stale = nil, 0, false
		p.long.home()
		ended := proc.State == stateDead || proc.State == stateArchived
		cmds = append(cmds, p.ear.about(ipc.EventsRequest{Target: p.sub.target(), History: true, Follow: !ended, Kinds: []event.Kind{event.Messaged, event.Delivered, event.Grouped}}))
		p.render()
	case !p.ear.done || before != proc.State:
		cmds = append(cmds, p.ear.resume())
	}
	return tea.Batch(cmds...)
}

// look asks for what waits in the mailbox.
func (p *mailPane) look() tea.Cmd {
	p.stale = false
	return p.box.ask(ipc.MailboxRequest{Target: p.sub.target(), Limit: 100})
}

// load asks again after a message came or went.
func (p *mailPane) load() tea.Cmd {
	if p.stale && !p.sub.none() {
		return p.look()
	}
	return nil
}

// waiting writes what waits in the mailbox.
func (p *mailPane) waiting(b *strings.Builder) {
	t, r := p.e.t, &p.box.got
	if state := p.box.state(t); state != "" {
		fmt.Fprintf(b, "WAITS IN ITS MAILBOX\n%s\n\n", state)
		return
	}
	if r.Total == 0 {
		b.WriteString("WAITS IN ITS MAILBOX\nnothing: it has got all that has come\n\n")
		return
	}
	fmt.Fprintf(b, "WAITS IN ITS MAILBOX  %s, %s bytes\n", plural(r.Total, "message", "messages"), number(r.Bytes))
	for i := range r.Letters {
		l := &r.Letters[i]
		from := "the user"
		switch {
		case l.From > 0:
			from = strings.TrimSpace("PID " + l.From.String() + " " + t.line(l.Name))
		case l.Kind == "child":
			from = "the kernel"
		}
		text := t.line(l.Line)
		if l.Binary {
			text = "(no text)"
		}
		when := ""
		if !l.Time.IsZero() {
			when = l.Time.Local().Format("15:04:05") + " "
		}
		fmt.Fprintf(b, "#%d %s%s from %s, %s bytes: %s\n", l.Seq, when, t.line(l.Kind), from, number(l.Bytes), text)
	}
	if more := r.Total - len(r.Letters); more > 0 {
		fmt.Fprintf(b, "(%s)\n", plural(more, "newer one", "newer ones"))
	}
	b.WriteString("\n")
}

func (p *mailPane) update(msg tea.Msg) tea.Cmd {
	cmd, got := p.ear.update(msg)
	for i := range got {
		p.lines = append(p.lines, heardLine(&got[i]).text)
	}
	if n := len(p.lines) - mailLines; n > 0 {
		p.lines, p.gone = append([]string(nil), p.lines[n:]...), p.gone+n
	}
	cmd2, fresh := p.groups.update(msg)
	cmd3, fresh2 := p.box.update(msg)
	if _, mine := msg.(heardMsg); fresh || fresh2 || mine && !p.sub.none() {
		p.render()
	}
	p.stale = p.stale || len(got) > 0
	return tea.Batch(cmd, cmd2, cmd3)
}

func (p *mailPane) render() {
	t := p.e.t
	var b strings.Builder
	p.waiting(&b)
	b.WriteString("MESSAGES THAT IT WAS SENT, as far as the event log still has them\n")
	if state := p.ear.state(t); p.ear.err != nil {
		b.WriteString(state + "\n")
	}
	if p.gone > 0 {
		fmt.Fprintf(&b, "(%s not kept here)\n", plural(p.gone, "older one is", "older ones are"))
	}
	for _, l := range p.lines {
		b.WriteString(l + "\n")
	}
	if len(p.lines) == 0 && p.ear.err == nil {
		b.WriteString("none that is still known\n")
	}
	state := p.groups.state(t)
	if state == "" && len(p.groups.got.Groups) == 0 {
		state = "no group has members"
	}
	heading(&b, "GROUPS", state)
	for _, g := range p.groups.got.Groups {
		var members []string
		for _, pid := range g.Members {
			name := pid.String()
			if pid == p.sub.proc.PID {
				name = "[" + name + "]"
			}
			members = append(members, name)
		}
		fmt.Fprintf(&b, "%s: PID %s\n", strings.TrimSpace(fmt.Sprintf("%d %s", g.ID, t.line(g.Name))), strings.Join(members, " "))
	}
	p.long.set(b.String())
}

func (p *mailPane) view(w, h int) string {
	if p.sub.none() {
		return noProcess
	}
	return p.long.view(w, h)
}
