package daemon

import (
	"context"
	"errors"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// startMail gives the service that carries messages what it needs of the others.
func startMail(d *Daemon) {
	m := d.mail
	m.Kernel, m.Stored, m.Finder, m.Secrets = d.kernel, letters{d}, finder{d}, d.secrets
}

// letters puts messages into histories that do not run.
type letters struct{ daemon *Daemon }

func (l letters) Read(ctx context.Context, id types.UUID) (*recovery.State, error) {
	s, _, _, err := l.daemon.store.Read(ctx, id)
	return s, err
}

// Put puts a message into the history of a process that is suspended. CONFLICT: somebody else writes it
// just now. BROKEN_PIPE: it has ended.
func (l letters) Put(ctx context.Context, id types.UUID, m step.Mail) (uint64, error) {
	d := l.daemon
	a, err := reviver{d}.open(ctx, id)
	if err != nil {
		return 0, err
	}
	defer a.close()
	s := a.state
	fail := func(code types.ErrCode, err error) (uint64, error) {
		return 0, &types.SyscallError{Syscall: "Send", PID: a.was.PID, Device: id.String(), Code: code, Err: err}
	}
	switch {
	case s.Phase == recovery.Ended:
		return fail(types.ErrBrokenPipe, errors.New("the process has ended"))
	case a.was.Body != nil:
		return fail(types.ErrInvalid, errors.New("it has no model, which could read the message"))
	case s.Has(m.Key):
		return s.SeqOf(m.Key), nil
	case !kernel.MailRoom(len(s.Mail), s.MailBytes(), &m):
		return fail(types.ErrExhausted, kernel.ErrMailFull)
	}
	m.Seq = s.MailSeq + 1
	if !d.secrets.Empty() {
		m.SetBytes(d.secrets.Bytes(m.Bytes()))
	}
	rec, err := step.MailRecord(m)
	if err != nil {
		return 0, err
	}
	if err := a.rec.Add(rec); err != nil {
		return 0, err
	}
	return m.Seq, a.rec.Commit()
}
