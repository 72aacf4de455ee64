package chat

import (
	"slices"
	"strings"

	tea "charm.land/bubbletea/v2"

	"rnix/debug"
	"rnix/internal/tui"
	"rnix/ipc"
	"rnix/types"
)

// speech is the answer under way, as far as it was heard.
type speech struct {
	answer uint64
	step   int             // to which it belongs; 0 = not known
	text   strings.Builder // what it says, from its beginning; at most maxSpeech bytes
	at     int             // how far it was heard, in bytes
	think  string          // the end of what it thinks
	over   bool            // text is not all of it
}

// maxSpeech is how much of an answer is kept to find it again in the conversation, in bytes.
const maxSpeech = 1 << 20

// takeEvent takes an event in.
func takeEvent(m *Model, e *ipc.Event) tea.Cmd {
	if e.UUID != m.id {
		return takeChildEvent(m, e)
	}
	switch e.Kind {
	case "piece":
		speak(m, e)
	case "log":
		switch {
		case e.Answer != 0:
			speak(m, e)
		case e.Name == "tool":
			if len(m.script.open) > 0 {
				m.printed = append(m.printed[max(len(m.printed)-1, 0):], tui.Line(m.t, e.Text))
				break
			}
			does(m, "calls "+tui.Line(m.t, e.Text))
			return m.fetch()
		case e.Name == "warning":
			remark(m, yellow, e.Text)
		}
	case "step_started":
		m.said.step, m.phase = e.Step, working
		does(m, "asks the model")
		m.hold = true
		return m.fetch()
	case "step_ended":
		m.detail.Step, m.printed = e.Step, nil
		does(m, "next step")
		m.late = m.idle
		return tea.Batch(m.fetch(), m.settle(), askContext(m))
	case "waiting":
		if e.Text == "" {
			does(m, "continues")
			break
		}
		does(m, "waits: "+tui.Line(m.t, e.Text))
	case "paused":
		remark(m, yellow, "paused"+with(": ", e.Text)+"; it is resumed with your next message")
		return m.settle()
	case "resumed":
		return m.settle()
	case "messaged":
		if e.Name == "steer" {
			notedMessage(m, e)
		}
	case "delivered":
		showDelivered(m, strings.Fields(e.Args))
		m.hold = true
		return m.fetch()
	case "asked", "answered":
		return readAsks(m)
	case "compacted", "refused":
		remark(m, dim, e.Text)
	case "storage_error":
		remark(m, red, "the record cannot be written: "+e.Path+with(": ", e.Err))
	case "exited":
		return m.settle()
	}
	return nil
}

// takeChildEvent takes in what a process below does.
func takeChildEvent(m *Model, e *ipc.Event) tea.Cmd {
	who := "PID " + e.PID.String()
	switch e.Kind {
	case "spawned":
		noteChild(m, e.UUID, "starts")
		remark(m, dim, who+" starts: "+e.Intent)
	case "step_started":
		noteChild(m, e.UUID, "asks the model")
	case "log":
		if e.Name == "tool" {
			noteChild(m, e.UUID, tui.Line(m.t, e.Text))
		}
	case "exited":
		delete(m.kids, e.UUID)
		if e.Exit != nil {
			remark(m, dim, who+" ended: "+e.Exit.Reason+" after "+debug.Duration(e.Dur))
		}
		return readAsks(m)
	case "asked", "answered":
		return readAsks(m)
	}
	return nil
}

// notedMessage notes that something was said, here or in another terminal.
func notedMessage(m *Model, e *ipc.Event) {
	for i := range m.queue {
		if q := &m.queue[i]; q.seq == "" && q.sent && alike(q.text, e.Text) {
			q.seq = e.Args
			return
		}
	}
	m.queue = append(m.queue, queued{message: message{text: e.Text}, sent: true, seq: e.Args})
}

// alike reports whether two texts begin alike, the second of which may be cut.
func alike(a, b string) bool {
	a, b = strings.Join(strings.Fields(a), " "), strings.Join(strings.Fields(b), " ")
	n := min(len(a), len(b), 40)
	return a[:n] == b[:n]
}

// showDelivered notes what the agent has got: it is printed behind what stands before it, and the conversation has it not before the answer.
func showDelivered(m *Model, seqs []string) {
	for _, seq := range seqs {
		i := slices.IndexFunc(m.queue, func(q queued) bool { return q.seq == seq })
		if i < 0 {
			continue
		}
		m.shown = append(m.shown, told{text: m.queue[i].text})
		m.queue = slices.Delete(m.queue, i, i+1)
	}
}

func noteChild(m *Model, id types.UUID, doing string) {
	if m.kids == nil {
		m.kids = map[types.UUID]string{}
	}
	m.kids[id] = doing
}

// does notes what the process does now.
func does(m *Model, what string) {
	if m.doing != what {
		m.doing, m.since = what, m.now()
	}
}

// maxRemarks is how many remarks wait for the end of an answer at most.
const maxRemarks = 100

// remark prints a line that is no part of the conversation. Within an answer it would be in its middle, and waits for its end.
func remark(m *Model, a attr, text string) {
	line := paint(m.t, a, tui.Cut(m.t, tui.Pick(m.t, "  ⎿ ", "  - ")+tui.Line(m.t, text), m.w-1))
	m.remarks = append(m.remarks[max(len(m.remarks)-maxRemarks+1, 0):], line)
	if m.said.text.Len() == 0 && !m.hold {
		printRemarks(m)
	}
}

// printRemarks prints what had to wait.
func printRemarks(m *Model) {
	if len(m.remarks) == 0 {
		return
	}
	m.block("call")
	m.print(m.remarks...)
	m.remarks = nil
}

// speak takes in what the model says.
func speak(m *Model, e *ipc.Event) {
	if m.hold {
		hold(m, e)
		return
	}
	s := &m.said
	text, covers := e.Text, len(e.Text)
	if e.Kind == "log" {
		if covers = e.Total; len(text) < covers {
			text += "\n"
		}
	}
	step := s.step
	if step == 0 {
		step = m.detail.Step + 1
	}
	if step <= m.script.step || e.Answer < s.answer {
		return // the conversation has it already
	}
	if e.Answer != s.answer {
		brokenOff(m)
		*s = speech{answer: e.Answer, step: s.step}
	}
	if e.Name == "think" {
		does(m, "thinks")
		s.think = tail(s.think+text, 512)
		return
	}
	if e.Name != "output" {
		return
	}
	known := max(s.at-e.At, 0)
	if known > covers {
		return
	}
	text = text[min(known, len(text)):]
	s.at = max(s.at, e.At+covers)
	if text == "" {
		return
	}
	does(m, "answers")
	if s.over = s.over || s.text.Len()+len(text) > maxSpeech; !s.over {
		s.text.WriteString(text)
	}
	printSaid(m, m.md.write(text))
}

// maxHeld is how many events are held back at most: as many again make the answer longer than what is kept of one.
const maxHeld = 1000

// hold holds back what the model says, pieces that follow on each other as one. What is too much is left to the conversation, which has all of it at the
// end of the step.
func hold(m *Model, e *ipc.Event) {
	if n := len(m.held) - 1; n >= 0 {
		if h := &m.held[n]; h.Kind == "piece" && e.Kind == h.Kind && e.Name == h.Name && e.Answer == h.Answer && e.At == h.At+len(h.Text) && len(h.Text) < maxSpeech {
			h.Text += e.Text
			return
		}
	}
	if len(m.held) < maxHeld {
		m.held = append(m.held, *e)
	}
}

// releaseHeld takes in what was held back.
func releaseHeld(m *Model) {
	for i := range m.shown {
		if t := &m.shown[i]; !t.printed {
			t.printed = true
			quoteSaid(m, t.text)
		}
	}
	if m.hold && m.said.step > m.script.step {
		m.script.open = nil // they belong to steps that have ended
	}
	held := m.held
	m.hold, m.held = false, nil
	for i := range held {
		speak(m, &held[i])
	}
	if m.said.text.Len() == 0 {
		printRemarks(m)
	}
}

// printSaid prints lines of an answer that are final.
func printSaid(m *Model, lines []string) {
	if len(lines) > 0 {
		m.block("answer")
		m.print(lines...)
	}
}

// brokenOff ends an answer that was begun and is not completed, as that of a model that is asked again.
func brokenOff(m *Model) {
	if m.said.text.Len() == 0 {
		return
	}
	printSaid(m, m.md.end())
	m.print(paint(m.t, dim, "(this answer was broken off)"))
	printRemarks(m)
}

// takeRecorded takes in that an answer is in the conversation: what of it was not heard is printed.
func takeRecorded(m *Model, content string, step int) {
	s := &m.said
	said, whole := strings.TrimLeft(s.text.String(), "\n "), strings.TrimLeft(content, "\n ")
	switch rest, ok := strings.CutPrefix(whole, said); {
	case s.over || strings.HasPrefix(said, strings.TrimRight(whole, "\n ")) && said != "":
		printSaid(m, m.md.end())
	case ok:
		printSaid(m, m.md.write(rest))
		printSaid(m, m.md.end())
	default:
		brokenOff(m)
		printSaid(m, m.md.write(whole))
		printSaid(m, m.md.end())
	}
	*s = speech{answer: s.answer, step: s.step}
	printRemarks(m)
	m.script.step, m.script.answer = max(m.script.step, step), content
}

func with(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}

// tail returns the last n bytes of a text, from the beginning of a character.
func tail(s string, n int) string {
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && s[0]&0xc0 == 0x80 {
		s = s[1:]
	}
	return s
}
