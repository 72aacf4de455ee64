package mail

import (
	"context"
	"errors"

	rnixctx "rnix/context"
	"rnix/internal/launch"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// Letters puts messages into histories that do not run.
type Letters struct {
	Stored  *launch.Stored
	Secrets Secrets
}

// Read returns what its record says of a process.
func (l Letters) Read(ctx context.Context, id types.UUID) (*recovery.State, error) {
	s, _, _, err := l.Stored.Store.Read(ctx, id)
	return s, err
}

// Put puts a message into the history of a process that is suspended, with what is shown with it. CONFLICT: somebody else writes it
// just now. BROKEN_PIPE: it has ended.
func (l Letters) Put(ctx context.Context, id types.UUID, m step.Mail, given []vfs.Attachment) (uint64, error) {
	a, err := l.Stored.Open(ctx, id)
	if err != nil {
		return 0, err
	}
	defer a.Close()
	s := a.State
	fail := func(code types.ErrCode, err error) (uint64, error) {
		return 0, &types.SyscallError{Syscall: "Send", PID: a.Was.PID, Device: id.String(), Code: code, Err: err}
	}
	switch {
	case s.Phase == recovery.Ended:
		return fail(types.ErrBrokenPipe, errors.New("the process has ended"))
	case a.Was.Body != nil:
		return fail(types.ErrInvalid, errors.New("it has no model, which could read the message"))
	case s.Has(m.Key):
		return s.SeqOf(m.Key), nil
	case !kernel.MailRoom(len(s.Mail), s.MailBytes(), &m):
		return fail(types.ErrExhausted, kernel.ErrMailFull)
	}
	if len(given) > 0 { // before the record that names it
		if m.Attachments, err = kernel.KeepAttachments(l.Stored.Cards.Journal.Blobs(), l.Secrets, id, given); err != nil {
			return 0, err
		}
		m.Text = rnixctx.WithLabels(m.Text, m.Attachments)
	}
	m.Seq = s.MailSeq + 1
	if !l.Secrets.Empty() {
		m.SetBytes(l.Secrets.Bytes(m.Bytes()))
	}
	rec, err := step.MailRecord(m)
	if err != nil {
		return 0, err
	}
	if err := a.Rec.Add(rec); err != nil {
		return 0, err
	}
	return m.Seq, a.Rec.Commit()
}
