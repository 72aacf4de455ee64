package tui

import (
	"fmt"
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// talkPane shows the conversation of a process: its end first, earlier messages when they are asked for. Of a long
// message it has a page, and more only on demand.
type talkPane struct {
	e        *env
	sub      subject
	page     *fetch[ipc.MessagesRequest, ipc.MessagesResponse] // the end, or what has come since
	before   *fetch[ipc.MessagesRequest, ipc.MessagesResponse] // an earlier page
	rest     *fetch[ipc.MessagesRequest, ipc.MessagesResponse] // more of one message
	messages []ipc.ConversationMessage
	at       []int // the part of the text at which each begins
	total    int
	packed   int // compactions
	prev     int // From of the page before; 0 = there is none
	damage   string
	long     *long
}

const (
	talkPage   = 50
	talkBytes  = 16 << 10  // of each text at first
	talkMore   = 128 << 10 // of a long one, each time that more is asked for
	mostInTalk = 2000      // messages that are kept
)

func newTalkPane(e *env) *talkPane {
	return &talkPane{e: e, page: newFetch(e, ipc.ListMessages), before: newFetch(e, ipc.ListMessages), rest: newFetch(e, ipc.ListMessages), long: newLong(e.t)}
}

func (p *talkPane) title() string { return "Talk" }
func (p *talkPane) text() *long   { return p.long }

func (p *talkPane) show(proc *ipc.Proc) tea.Cmd {
	other, changed := p.sub.take(proc)
	if other {
		p.forget()
	}
	if p.sub.none() || !changed && p.page.err == nil {
		return nil
	}
	return p.page.ask(p.latest())
}

func (p *talkPane) forget() {
	p.page.forget()
	p.before.forget()
	p.rest.forget()
	p.messages, p.prev = nil, 0
	p.long.home()
	p.long.tail = true
}

// latest asks for what has come since, or for the end.
func (p *talkPane) latest() ipc.MessagesRequest {
	req := ipc.MessagesRequest{Target: p.sub.target(), From: -talkPage, Limit: talkPage, MaxBytes: talkBytes}
	if n := len(p.messages); n > 0 {
		req.From = p.messages[n-1].N
	}
	return req
}

func (p *talkPane) update(msg tea.Msg) tea.Cmd {
	var cmds []tea.Cmd
	cmd, fresh := p.page.update(msg)
	cmds = append(cmds, cmd)
	if fresh && p.page.err == nil {
		cmds = append(cmds, p.append())
	}
	cmd, earlier := p.before.update(msg)
	cmds = append(cmds, cmd)
	if earlier && p.before.err == nil {
		p.prepend()
	}
	cmd, more := p.rest.update(msg)
	cmds = append(cmds, cmd)
	if more && p.rest.err == nil {
		p.lengthen()
	}
	if fresh && p.page.err != nil && len(p.messages) == 0 {
		p.long.set(p.page.state(p.e.t))
	}
	return tea.Batch(cmds...)
}

// append takes the newest messages in.
func (p *talkPane) append() tea.Cmd {
	r := &p.page.got
	if len(p.messages) > 0 && r.Compactions != p.packed { // what there was is another conversation now
		p.packed = r.Compactions
		p.forget()
		return p.page.ask(p.latest())
	}
	p.packed, p.total, p.damage = r.Compactions, r.Total, r.Damage
	if len(p.messages) == 0 {
		p.prev = r.Prev
	}
	for _, m := range r.Messages {
		if n := len(p.messages); n == 0 || m.N > p.messages[n-1].N {
			p.messages = append(p.messages, m)
		}
	}
	if n := len(p.messages) - mostInTalk; n > 0 {
		p.prev = max(p.messages[n-1].N-talkPage+1, 1)
		p.messages = append([]ipc.ConversationMessage(nil), p.messages[n:]...)
	}
	p.render()
	if r.Next != 0 && len(r.Messages) > 0 {
		return p.page.ask(p.latest())
	}
	return nil
}

// prepend takes an earlier page in, and stays at what is in sight.
func (p *talkPane) prepend() {
	r := &p.before.got
	var older []ipc.ConversationMessage
	for _, m := range r.Messages {
		if len(p.messages) == 0 || m.N < p.messages[0].N {
			older = append(older, m)
		}
	}
	n, at := len(p.long.parts), p.long.at
	p.messages, p.prev = append(older, p.messages...), r.Prev
	p.long.tail = false
	p.render()
	p.long.at = place2{at.part + len(p.long.parts) - n, at.row}
	p.long.bound()
}

// lengthen takes more of one message in.
func (p *talkPane) lengthen() {
	for _, m := range p.rest.got.Messages {
		i := slices.IndexFunc(p.messages, func(o ipc.ConversationMessage) bool { return o.N == m.N })
		if i < 0 || m.Skipped != len(p.messages[i].Content) {
			continue
		}
		p.messages[i].Content += m.Content
		p.messages[i].Cut = m.Cut
	}
	at := p.long.at
	p.long.tail = false
	p.render()
	p.long.at = at
	p.long.bound()
}

func (p *talkPane) render() {
	var b strings.Builder
	p.at = p.at[:0]
	tail := p.long.tail
	p.long.tail = false
	at := p.long.at
	p.long.set("")
	p.long.parts = nil
	switch {
	case p.prev > 0:
		p.long.add(fmt.Sprintf("(there are earlier messages, %d in all; e shows more)", p.total))
	case len(p.messages) == 0:
		p.long.add("nothing was said yet")
	}
	for i := range p.messages {
		from := len(p.long.parts)
		p.at = append(p.at, from)
		b.Reset()
		messageText(&b, p.e.t, &p.messages[i])
		if p.long.add(b.String()); p.messages[i].Role == "tool" {
			p.long.tint(from)
		}
	}
	if p.damage != "" {
		p.long.add("\nwhat is behind is missing: " + p.damage)
	}
	p.long.at = at
	if p.long.tail = tail; tail {
		p.long.end()
	}
	p.long.bound()
}

func (p *talkPane) view(w, h int) string {
	t := p.e.t
	if p.sub.none() {
		return noProcess
	}
	if !p.page.known && len(p.messages) == 0 {
		return t.cut(p.page.state(t), w)
	}
	head := plural(p.total, "message", "messages")
	if p.packed > 0 {
		head += fmt.Sprintf(", after %s", plural(p.packed, "compaction", "compactions"))
	}
	for _, f := range []*fetch[ipc.MessagesRequest, ipc.MessagesResponse]{p.page, p.before, p.rest} {
		if f.err != nil {
			head = "as it was known; " + t.line(errorText(f.err))
		}
	}
	return headed(t, head, w, h, p.long.view(w, max(h-1, 0)))
}

func (p *talkPane) keys() []binding {
	return []binding{
		key(inPane, "e", "earlier messages", "earlier", func(m *Model) tea.Cmd {
			if p.prev == 0 {
				m.say("this is the beginning")
				return nil
			}
			return p.before.ask(ipc.MessagesRequest{Target: p.sub.target(), From: p.prev, Limit: talkPage, MaxBytes: talkBytes})
		}),
		key(inPane, "x", "more of the long message in sight", "more", p.more),
		key(inPane, "f", "follow the end, or not", "", act(func(m *Model) {
			if p.long.tail = !p.long.tail; p.long.tail {
				p.long.end()
				m.say("follows the end")
				return
			}
			m.say("does not follow")
		})),
	}
}

// more asks for more of the first message in sight of which something is left out.
func (p *talkPane) more(m *Model) tea.Cmd {
	for i := range p.messages {
		end := len(p.long.parts)
		if i+1 < len(p.at) {
			end = p.at[i+1]
		}
		if end <= p.long.at.part || p.messages[i].Cut == 0 {
			continue
		}
		if p.at[i] > p.long.at.part+p.long.h {
			break
		}
		msg := &p.messages[i]
		return p.rest.ask(ipc.MessagesRequest{Target: p.sub.target(), From: msg.N, Limit: 1, MaxBytes: talkMore, Skip: len(msg.Content)})
	}
	m.say("all of what is in sight is shown")
	return nil
}
