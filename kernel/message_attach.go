package kernel

import (
	"context"
	"errors"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/kernel/internal/mailbox"
	"rnix/types"
	"rnix/vfs"
)

// postAttached is deliverMail for a message of a client with what is shown with it.
func postAttached(ctx context.Context, ml *mailer, target types.PID, m step.Mail, given []vfs.Attachment, wait bool) (uint64, error) {
	p, err := ml.table.lookup("Send", target)
	if err != nil {
		return 0, err
	}
	switch {
	case p.opts.Body != nil:
		return 0, &types.SyscallError{Syscall: "Send", PID: target, Code: types.ErrInvalid, Err: errNoAgent}
	case !ml.records(p):
		return 0, &types.SyscallError{Syscall: "Send", PID: target, Code: types.ErrInvalid, Err: errors.New("this kernel keeps no histories, and so no files of messages")}
	}
	if m.Attachments, err = describeAttachments(ml.secrets, given); err != nil {
		return 0, err
	}
	m.Text = rnixctx.WithLabels(m.Text, m.Attachments)
	if n := len(m.Bytes()); n > MaxMessage {
		return 0, tooLarge(target, n)
	}
	if !ml.secrets.Empty() {
		m.SetBytes(ml.secrets.Bytes(m.Bytes()))
	}
	return ml.traced(m.From, target, string(m.Bytes()), wait, func() (uint64, error) {
		for {
			seq, room, err := ml.acceptAttached(p, &m, given)
			if room == nil || !wait {
				return seq, err
			}
			select {
			case <-room:
			case <-ctx.Done():
				return 0, sendError(target, context.Cause(ctx))
			}
		}
	})
}

// acceptAttached puts a message into the mailbox if there is room for it; else room is closed when it may be tried again, and err says that it is full. Its files
// are written when it has its room, and before its record: what is refused leaves none. It holds the right to write messages meanwhile, so that the process does
// not leave, and nobody else has its history.
func (ml *mailer) acceptAttached(p *Process, m *step.Mail, given []vfs.Attachment) (seq uint64, room <-chan struct{}, err error) {
	o := &p.post
	o.writing.Lock()
	defer o.writing.Unlock()
	o.mu.Lock()
	seq, known := o.keys[m.Key]
	switch {
	case known && m.Key != "":
		b := o.batch
		o.mu.Unlock()
		if b != nil { // it was not written yet, perhaps
			ml.flushLocked(p, b)
			err = b.err
		}
		return seq, nil, err
	case o.closed:
		o.mu.Unlock()
		return 0, nil, sendError(p.PID, mailbox.ErrClosed)
	case !MailRoom(p.box.Len()+o.queued, o.bytes, m):
		if o.room == nil {
			o.room = make(chan struct{})
		}
		room = o.room
		o.mu.Unlock()
		return 0, room, sendError(p.PID, mailbox.ErrFull)
	}
	n := len(m.Bytes())
	o.queued, o.bytes = o.queued+1, o.bytes+n // nobody else gets its room
	o.mu.Unlock()
	_, err = KeepAttachments(ml.store, ml.secrets, p.UUID, given)
	o.mu.Lock()
	o.queued, o.bytes = o.queued-1, o.bytes-n
	if err != nil {
		o.wakeLocked()
		o.mu.Unlock()
		return 0, nil, err
	}
	b := o.acceptLocked(m)
	o.mu.Unlock()
	ml.flushLocked(p, b)
	return m.Seq, nil, b.err
}

// shownWith returns what is shown with messages, and their texts name.
func shownWith(ms []*Message) (out []rnixctx.Attachment) {
	for _, m := range ms {
		if m.mail != nil {
			out = append(out, m.mail.Attachments...)
		}
	}
	return out
}

// Said returns what a message says to whoever is not shown what goes along with it.
func (m *Message) Said() string {
	text := rnixctx.Message{Content: string(m.Data), Attachments: shownWith([]*Message{m})}
	return text.Showing(func(*rnixctx.Attachment) string {
		return "the message was taken out of the mailbox, where a model would have been shown it"
	}).Content
}
