package chat

import (
	"slices"
	"strings"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// script is the conversation as far as it is shown.
type script struct {
	next   int  // the number of the message to read next; 0 = the last ones
	busy   bool // it is being read
	again  bool // ... and there is more
	over   bool // the run has ended: its end is said behind what is read
	step   int  // of the last answer that is shown
	at     int  // its number
	answer string
	open   []openCall
	inputs []input // what persons have said, as far as it is shown
}

// input is something that a person has said.
type input struct {
	text  string
	step  int  // the last one before
	first bool // it is what the process was started with
	n     int  // its number
}

// openCall is a call without a result.
type openCall struct {
	id, name, input string
	at              time.Time // when it was recorded
	since           time.Time // by our clock
}

// How much of a conversation is read at once, and shown of what was before.
const (
	pageMessages = 200
	pastMessages = 40
)

// fetch reads what the conversation has more, and prints it.
func (m *Model) fetch() tea.Cmd {
	s := &m.script
	if s.busy {
		s.again = true
		return nil
	}
	if m.id == (types.UUID{}) || m.away {
		return nil
	}
	s.busy, s.again = true, false
	req := ipc.MessagesRequest{Target: m.id.String(), From: s.next, Limit: pageMessages, MaxBytes: ipc.MaxTextBytes}
	if s.next == 0 {
		req.From = -pastMessages
	}
	id := m.id
	return call(m, ipc.ListMessages, req, func(m *Model, r ipc.MessagesResponse, err error) tea.Cmd {
		s := &m.script
		s.busy = false
		if id != m.id {
			return m.fetch()
		}
		if err != nil {
			releaseHeld(m)
			if s.over && !gone(err) {
				finishRun(m)
			}
			return m.fail(err)
		}
		if s.next == 0 && r.Prev > 0 {
			m.print(paint(m.t, dim, "(earlier messages: rnix log "+tui.Line(m.t, addressOf(m))+")"))
		}
		for i := range r.Messages {
			takeMessage(m, &r.Messages[i])
		}
		switch {
		case r.Next > 0 || s.again:
			return m.fetch()
		case s.over:
			releaseHeld(m)
			finishRun(m)
		}
		releaseHeld(m)
		return nil
	})
}

// takeMessage prints a message.
func takeMessage(m *Model, c *ipc.ConversationMessage) {
	if c.N < m.script.next {
		return
	}
	m.script.next = c.N + 1
	switch c.Role {
	case "user":
		takeUser(m, c)
	case "assistant":
		if strings.TrimSpace(c.Content) != "" || m.said.text.Len() > 0 {
			takeRecorded(m, c.Content, c.Step)
		}
		m.script.step, m.script.at = max(m.script.step, c.Step), c.N
		for _, k := range c.ToolCalls {
			m.script.open = append(m.script.open, openCall{k.ID, k.Name, k.Input, c.Time, m.now()})
		}
	case "tool":
		showResult(m, c)
	}
	if c.Cut > 0 {
		m.print(paint(m.t, dim, "("+plural(c.Cut, "byte more is", "bytes more are")+" not shown)"))
	}
}

// maxSaid is how many lines are shown of what a person has said.
const maxSaid = 12

// takeUser prints what was said to the agent.
func takeUser(m *Model, c *ipc.ConversationMessage) {
	if m.said.text.Len() == 0 {
		printSaid(m, m.md.end())
	}
	switch c.From {
	case "compaction":
		m.block("call")
		m.print(paint(m.t, dim, "(the conversation was compacted here)"))
		return
	case "message", "child":
		remark(m, dim, "a message: "+c.Content)
		return
	case "system":
		remark(m, dim, "a notice: "+c.Content)
		return
	}
	m.script.inputs = append(m.script.inputs, input{typedOf(c.Content), c.Step, c.N == 1, c.N})
	if i := slices.IndexFunc(m.shown, func(s told) bool { return alike(s.text, c.Content) }); i >= 0 && c.From == "steer" {
		printed := m.shown[i].printed
		if m.shown = slices.Delete(m.shown, i, i+1); printed {
			return
		}
	}
	unqueue(m, c.Content)
	quoteSaid(m, c.Content)
}

// quoteSaid prints what a person has said.
func quoteSaid(m *Model, text string) {
	m.block("user")
	mark, a := tui.Pick(m.t, "› ", "> "), bold
	lines := strings.Split(strings.TrimRight(tui.Clean(m.t, bounded(typedOf(text), 64<<10)), "\n"), "\n")
	for i, l := range lines {
		if i == maxSaid {
			m.print(paint(m.t, dim, "  ("+plural(len(lines)-i, "line", "lines")+" more)"))
			break
		}
		m.print(wrap(m.t, []span{{bounded(l, 4<<10), a}}, paint(m.t, cyan|bold, mark), "  ", m.md.w)...)
		mark = "  "
	}
}

// typedOf returns what the person has typed of what was said: without what a fork is told before it, and without the files behind it.
func typedOf(text string) string {
	if _, rest, ok := strings.Cut(text, "]\n\n"); ok && strings.HasPrefix(text, "[This process is a fork of ") {
		text = rest // which was said here already
	}
	text, _, _ = strings.Cut(text, "\n\nWhat follows was handed over with this task.")
	if at := shownMark().FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	if at := fileMark().FindStringIndex(text); at != nil {
		text = text[:at[0]]
	}
	return text
}

// unqueue takes what is in the conversation now out of what waits.
func unqueue(m *Model, content string) {
	for i, q := range m.queue {
		if text := strings.TrimSpace(q.text); strings.Contains(content, text[:min(len(text), 200)]) {
			m.queue = append(m.queue[:i:i], m.queue[i+1:]...)
			return
		}
	}
}

// bounded returns at most n bytes of a text.
func bounded(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "")
}

// printer is what is printed above, in the order in which it comes.
type printer struct {
	lines []string
	kind  string // of the last block
	busy  bool   // some lines are being printed
}

// printedMsg says that lines were printed.
type printedMsg struct{}

// print puts lines into the terminal, for good.
func (m *Model) print(lines ...string) { m.out.lines = append(m.out.lines, lines...) }

// block begins a part: between two there is an empty line, but calls stand close.
func (m *Model) block(kind string) {
	if m.out.kind != "" && (m.out.kind != kind && m.out.kind != typedKind || kind == "user") {
		m.print("")
	}
	m.out.kind = kind
}

// flush prints what there is, as much at once as the terminal has room for.
func (m *Model) flush() tea.Cmd {
	if m.out.busy || m.size.changed || m.drawing != nil && !m.drawn || len(m.out.lines) == 0 {
		return nil
	}
	n := min(len(m.out.lines), max(m.h-liveMost(m)-1, 1))
	text := strings.Join(m.out.lines[:n], "\n")
	if m.out.lines = m.out.lines[n:]; len(m.out.lines) == 0 {
		m.out.lines = nil
	}
	if text == "" {
		text = " " // an empty one is not printed
	}
	m.out.busy = true
	return tea.Sequence(tea.Println(text), func() tea.Msg { return printedMsg{} })
}
