package kernel

import (
	"strconv"
	"strings"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// postman is what the loop of a process sees of its mailbox.
type postman struct {
	k *KernelImpl
	p *Process
}

// Deliver implements loop.Host.
func (h postman) Deliver() error {
	if err := h.deliverNews(); err != nil {
		return err
	}
	if h.p.box.Len() == 0 {
		return nil
	}
	for _, m := range h.p.box.Take(isSteer) {
		h.p.post.took(m)
		if err := h.converse(rnixctx.Message{Role: rnixctx.RoleUser, Content: string(m.Data), Attachments: shownWith([]*Message{m})}, m); err != nil {
			return err
		}
	}
	ms := takeMail(h.p, len(mailAtOnce(h.p)))
	if len(ms) == 0 {
		return nil
	}
	return h.converse(rnixctx.Message{Role: rnixctx.RoleUser, Content: mailText(ms, h.p.box.Len()), Attachments: shownWith(ms)}, ms...)
}

// mailAtOnce are the messages that a model gets at once, the oldest first; none that a person has said.
func mailAtOnce(p *Process) []*Message {
	var waiting []*Message
	p.box.Has(func(m *Message) bool {
		if !isSteer(m) {
			waiting = append(waiting, m)
		}
		return false
	})
	return waiting[:portion(waiting)]
}

// takeMail takes the n oldest messages out of the mailbox, but none that a person has said.
func takeMail(p *Process, n int) []*Message {
	ms := p.box.Take(func(m *Message) bool {
		if isSteer(m) || n == 0 {
			return false
		}
		n--
		return true
	})
	p.post.took(ms...)
	return ms
}

func isSteer(m *Message) bool { return m.mail != nil && m.mail.Kind == step.MailSteer }

// converse appends a message to the conversation that holds messages of the mailbox.
func (h postman) converse(said rnixctx.Message, ms ...*Message) error {
	if err := h.k.ctxMgr.Append(h.p.CtxID, said); err != nil {
		return err
	}
	if err := h.p.rec.Add(step.Record{Kind: step.KindMessage, Message: &said, Delivered: numbers(ms)}); err != nil {
		return err
	}
	h.delivered(ms)
	return nil
}

// delivered announces that messages have reached the conversation.
func (h postman) delivered(ms []*Message) {
	var seqs []string
	for _, m := range ms {
		seqs = append(seqs, strconv.FormatUint(m.Seq, 10))
	}
	h.k.events.Append(event.Event{Kind: event.Delivered, PID: h.p.PID, UUID: h.p.UUID, Args: strings.Join(seqs, " ")})
}

func numbers(ms []*Message) []uint64 {
	out := make([]uint64, len(ms))
	for i, m := range ms {
		out[i] = m.Seq
	}
	return out
}

// Leave implements loop.Host.
func (h postman) Leave(final bool) (mail bool, note string) {
	if final {
		return !h.k.mail.seal(h.p, false), ""
	}
	if h.p.box.Len() > 0 {
		return true, ""
	}
	if left := h.k.children.running(h.p); len(left) > 0 && h.p.kids.warn() {
		return false, "child processes still run: " + strings.Join(left, ", ") + ". Wait for them (wait), end them (signal), or finish once more to leave them running without you"
	}
	return false, ""
}

// undelivered says in the log that a process has ended before it got all messages.
func (ml *mailer) undelivered(p *Process) {
	if n := p.box.Len(); n > 0 && p.opts.Body == nil {
		ml.events.Put(&event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: "warning", Text: types.Counted(n, "message was", "messages were") + " not delivered, and will be if it is resumed"})
	}
}
