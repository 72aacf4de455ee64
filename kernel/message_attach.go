package kernel

import (
	"errors"

	rnixctx "rnix/context"
	"rnix/kernel/internal/mailbox"
	"rnix/types"
	"rnix/vfs"
)

// attach keeps what goes along with a message to a process. It holds the right to write messages meanwhile: the process does not leave
// before that, and nobody else has its history.
func (ml *mailer) attach(target types.PID, given []vfs.Attachment) ([]rnixctx.Attachment, error) {
	p, err := ml.table.lookup("Send", target)
	if err != nil {
		return nil, err
	}
	fail := func(code types.ErrCode, err error) ([]rnixctx.Attachment, error) {
		return nil, &types.SyscallError{Syscall: "Send", PID: target, Code: code, Err: err}
	}
	switch {
	case p.opts.Body != nil:
		return fail(types.ErrInvalid, errNoAgent)
	case !ml.records(p):
		return fail(types.ErrInvalid, errors.New("this kernel keeps no histories, and so no files of messages"))
	}
	o := &p.post
	o.writing.Lock()
	defer o.writing.Unlock()
	o.mu.Lock()
	closed := o.closed
	o.mu.Unlock()
	if closed {
		return nil, sendError(target, mailbox.ErrClosed)
	}
	return KeepAttachments(ml.store, ml.secrets, p.UUID, given)
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
