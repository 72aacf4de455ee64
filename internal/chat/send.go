package chat

import (
	"slices"

	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
	"rnix/types"
)

// message is what a person says, with the images and PDFs that it names as they were when it was said.
type message struct {
	text   string
	shown  []ipc.Attachment
	labels []string // of shown
}

func textsOf(all []message) (texts []string) {
	for i := range all {
		texts = append(texts, all[i].text)
	}
	return texts
}

// send says something to the agent. What it names with @ is looked at before anything is sent: if that cannot be given to the agent, the text goes back to
// where it was typed.
func (m *Model) send(text string) tea.Cmd {
	said, err := compose(m, text)
	if err != nil {
		m.keep(text)
		return m.fail(err)
	}
	return say(m, said)
}

// say says something to the agent: at first it starts a process, one that works is told before its next prompt, and all others are resumed with it.
func say(m *Model, said message) tea.Cmd {
	switch {
	case m.away && m.lost:
		m.keep(said.text)
		return goAway(m)
	case m.away || m.phase == starting:
		m.queue = append(m.queue, queued{message: said})
		return nil
	case m.id == (types.UUID{}):
		return spawnWith(m, said)
	case m.phase == working && m.next.fork == nil:
		m.queue = append(m.queue, queued{message: said})
		return m.steer()
	}
	return resumeWith(m, said)
}

// keep puts a text that could not be sent back to where it was typed, before what is being typed.
func (m *Model) keep(text string) {
	if !m.ed.empty() {
		text += "\n" + m.ed.value()
	}
	m.ed.set(text)
	lookBeside(m)
}

// unsent takes out of what waits what the daemon does not have, in its order.
func (m *Model) unsent() (all []message) {
	m.queue = slices.DeleteFunc(m.queue, func(q queued) bool {
		if !q.sent {
			all = append(all, q.message)
		}
		return !q.sent
	})
	return all
}

// sendQueued says what was said while nothing could be sent.
func (m *Model) sendQueued() tea.Cmd {
	var cmds []tea.Cmd
	for _, said := range m.unsent() {
		cmds = append(cmds, say(m, said)) // the first may start a run, for which the others wait
	}
	return tea.Batch(cmds...)
}

// steer sends what was said while the agent works and was not sent yet.
func (m *Model) steer() tea.Cmd {
	var cmds []tea.Cmd
	for i := range m.queue {
		q := &m.queue[i]
		if q.sent {
			continue
		}
		text, err := inlinedText(m, q.text)
		if err != nil {
			text = q.text
			cmds = append(cmds, m.fail(err))
		}
		q.sent = true
		said, own := q.message, takeBeside(m)
		req := ipc.SendRequest{Target: m.id.String(), Text: text + ranText(own.ran), Attachments: own.with(said.shown), Key: types.NewUUID().String()}
		cmds = append(cmds, callOr(m, ipc.Steer, req, func(m *Model, _ ipc.SendResponse, err error) tea.Cmd {
			if err == nil {
				m.clashed = false
				return nil
			}
			unqueue(m, said.text)
			giveBeside(m, own)
			if c := types.CodeOf(err); c == types.ErrBrokenPipe || c == types.ErrNotFound || c == types.ErrConflict { // it has ended meanwhile
				m.phase = ended
				return say(m, said)
			}
			m.keep(said.text)
			return m.fail(err)
		}, func(m *Model, _ ipc.SendResponse, err error) {
			if err != nil {
				m.keep(said.text)
				m.complain(err)
			}
		}))
	}
	return tea.Batch(cmds...)
}
