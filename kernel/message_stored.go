package kernel

import (
	"context"
	"fmt"

	"rnix/internal/step"
	"rnix/kernel/internal/actions"
	"rnix/kernel/internal/mailbox"
	"rnix/types"
	"rnix/vfs"
)

// SendRight is the path that must be allowed for an agent to send messages. No device is there.
const SendRight = actions.SendPath

// AskRight is the path that must be allowed for an agent to ask persons questions. No device is there.
const AskRight = actions.AskPath

// MailRoom reports whether a mailbox that holds so many messages, of so many bytes in all, takes another one.
func MailRoom(messages, bytes int, m *step.Mail) bool {
	most, mostBytes := mailMax, mailBytes
	if m.Kind != step.MailMessage {
		most, mostBytes = 2*most, 2*mostBytes
	}
	return messages < most && bytes+len(m.Bytes()) <= mostBytes
}

// ErrMailFull is the cause of RESOURCE_EXHAUSTED of a full mailbox, wherever it is.
var ErrMailFull = mailbox.ErrFull

// MaySend refuses a message of one living process to another: it needs the right, and both must be of one
// family, that of an agent that a person has started.
func (k *KernelImpl) MaySend(sender, target types.PID) error {
	return k.mail.maySend(sender, target)
}

// maySend refuses a process without the right.
func maySend(p *Process) error {
	return permitted(p, "Send", SendRight, "send messages")
}

// related reports whether two processes descend from one that a person has started.
func (t *table) related(a, b *Process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	return a.rel.family == b.rel.family || t.rootLocked(a) == t.rootLocked(b)
}

// above reports whether up is above p in the tree of processes.
func (t *table) above(up, p *Process) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p = p.rel.parent; p != nil && p != up; p = p.rel.parent {
	}
	return p != nil
}

// rootLocked returns the uppermost living process above p, or p.
//
// +checklocks:t.mu
func (t *table) rootLocked(p *Process) *Process {
	for p.rel.parent != nil {
		p = p.rel.parent
	}
	return p
}

// Delivered waits until a message has left the mailbox of a process, and reports whether it has before the
// process ended. A number that no message has is NOT_FOUND. The end of ctx is TIMEOUT or CANCELLED.
func (k *KernelImpl) Delivered(ctx context.Context, pid types.PID, seq uint64) (bool, error) {
	return k.mail.delivered(ctx, pid, seq)
}

// letters is a Store that can tell all messages of a history.
type letters interface {
	Letters(id types.UUID) ([]step.Letter, error)
}

// Messages returns the messages to a process for /proc: all that its history has, or those that wait.
func (v Proc) Messages(pid types.PID) ([]vfs.ProcMessage, error) {
	return v.k.mail.messages(pid)
}

// Mail returns a message with everything that is known of it.
func (m *Message) Mail() step.Mail {
	mail := step.Mail{Seq: m.Seq, Kind: step.MailMessage, From: m.From}
	if m.mail != nil {
		mail = *m.mail
	}
	mail.SetBytes(m.Data)
	return mail
}

func (ml *mailer) maySend(sender, target types.PID) error {
	s, err := ml.table.lookup("Send", sender)
	if err != nil {
		return err
	}
	if err := maySend(s); err != nil {
		return err
	}
	t, err := ml.table.lookup("Send", target)
	if err != nil {
		return err
	}
	return ml.related(s, t)
}

// related refuses a message between strangers.
func (ml *mailer) related(s, t *Process) error {
	if ml.table.related(s, t) {
		return nil
	}
	return &types.SyscallError{Syscall: "Send", PID: t.PID, Code: types.ErrPermission,
		Err: fmt.Errorf("it does not belong to the agents that were started with this one; messages go to a parent, children, and their relatives")}
}

func (ml *mailer) delivered(ctx context.Context, pid types.PID, seq uint64) (bool, error) {
	p, err := ml.table.lookup("Delivered", pid)
	if err != nil {
		return false, err
	}
	if last := p.post.seq.Load(); seq == 0 || seq > last {
		return false, &types.SyscallError{Syscall: "Delivered", PID: pid, Code: types.ErrNotFound, Err: fmt.Errorf("no message %d: %d have come", seq, last)}
	}
	for {
		changed := p.box.Changed()
		over := p.box.Closed() // before it is looked at
		if !p.box.Has(func(m *Message) bool { return m.Seq == seq }) {
			return true, nil
		}
		if over {
			return false, nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			code := types.ErrCancelled
			if ctx.Err() == context.DeadlineExceeded {
				code = types.ErrTimeout
			}
			return false, &types.SyscallError{Syscall: "Delivered", PID: pid, Code: code, Err: context.Cause(ctx)}
		}
	}
}

func (ml *mailer) messages(pid types.PID) ([]vfs.ProcMessage, error) {
	p, err := ml.table.lookup("Read", pid)
	if err != nil {
		return nil, err
	}
	var all []step.Letter
	if s, ok := ml.store.(letters); ok && ml.records(p) {
		if all, err = s.Letters(p.UUID); err != nil {
			return nil, err
		}
	} else {
		p.box.Has(func(m *Message) bool { all = append(all, step.Letter{Mail: m.Mail()}); return false })
	}
	out := make([]vfs.ProcMessage, len(all))
	for i, l := range all {
		out[i] = vfs.ProcMessage{Number: l.Seq, Kind: string(l.Kind), Delivered: l.Delivered, From: sender(&l.Mail), Text: string(l.Bytes())}
	}
	return out, nil
}
