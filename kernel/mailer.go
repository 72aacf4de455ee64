package kernel

import (
	"context"
	"errors"
	"strconv"
	"time"

	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/internal/step"
	"rnix/kernel/internal/mailbox"
	"rnix/types"
)

// mailer carries messages into the mailboxes of processes and out of them. It keeps those to agents in their
// histories. What waits belongs to the process: its box, and its post; see there for the locks.
type mailer struct {
	table   *table
	events  *event.Log
	tracer  *tracer
	secrets *redact.Set
	store   Store
	keeps   bool // the store keeps histories
}

// deliver sends data, and says so in the trace of the sender.
func (ml *mailer) deliver(ctx context.Context, sender, target types.PID, data []byte, wait bool) error {
	_, err := ml.traced(sender, target, string(data), wait, func() (uint64, error) { return ml.send(ctx, sender, target, data, wait) })
	return err
}

// deliverMail is deliver for a message of which more is known.
func (ml *mailer) deliverMail(ctx context.Context, target types.PID, m step.Mail, wait bool) (uint64, error) {
	return ml.traced(m.From, target, string(m.Bytes()), wait, func() (uint64, error) { return ml.sendMail(ctx, target, m, wait) })
}

// traced traces the sending of a message.
func (ml *mailer) traced(sender, target types.PID, text string, wait bool, send func() (uint64, error)) (seq uint64, err error) {
	c := ml.tracer.call(ml.table.caller(sender), "Send", "")
	_, err = c.does(wait, target.String()+", "+ml.tracer.brief(text), func() (string, error) {
		seq, err = send()
		return "message " + strconv.FormatUint(seq, 10), err
	})
	return seq, err
}

// send is deliver that returns the number of the message; without wait it does not wait for room.
func (ml *mailer) send(ctx context.Context, sender, target types.PID, data []byte, wait bool) (uint64, error) {
	p, err := ml.table.lookup("Send", target)
	if err != nil {
		return 0, err
	}
	if len(data) > MaxMessage {
		return 0, tooLarge(target, len(data))
	}
	if ml.records(p) {
		m := ml.mailFrom(sender)
		m.SetBytes(data)
		return ml.post(ctx, p, m, wait)
	}
	m := &Message{Seq: p.post.seq.Add(1), From: sender, Data: data}
	if wait {
		err = p.box.PutWait(ctx, m)
	} else {
		err = p.box.Put(m)
	}
	return m.Seq, sendError(target, err)
}

func (ml *mailer) sendMail(ctx context.Context, target types.PID, m step.Mail, wait bool) (uint64, error) {
	p, err := ml.table.lookup("Send", target)
	if err != nil {
		return 0, err
	}
	if p.opts.Body != nil {
		return 0, &types.SyscallError{Syscall: "Send", PID: target, Code: types.ErrInvalid, Err: errNoAgent}
	}
	if n := len(m.Bytes()); n > MaxMessage {
		return 0, tooLarge(target, n)
	}
	return ml.post(ctx, p, m, wait)
}

// mailFrom begins a message of a process.
func (ml *mailer) mailFrom(sender types.PID) step.Mail {
	m := step.Mail{Kind: step.MailMessage, From: sender, Time: time.Now()}
	if s, ok := ml.table.get(sender); ok {
		m.FromUUID, m.Name = s.UUID, s.Name()
	}
	return m
}

// recv takes the oldest message of a process, and says so in the trace of the process.
func (ml *mailer) recv(ctx context.Context, pid types.PID) (*Message, error) {
	c := ml.tracer.call(ml.table.caller(pid), "Recv", "")
	if c.p != nil && c.p.box.Len() == 0 {
		c.begins(pid.String())
	}
	m, err := ml.take(ctx, pid)
	result := ""
	if err == nil {
		result = "message " + strconv.FormatUint(m.Seq, 10) + " from " + m.From.String()
	}
	c.ends(pid.String(), result, err)
	return m, err
}

func (ml *mailer) take(ctx context.Context, pid types.PID) (*Message, error) {
	p, err := ml.table.lookup("Recv", pid)
	if err != nil {
		return nil, err
	}
	fail := func(code types.ErrCode, err error) (*Message, error) {
		return nil, &types.SyscallError{Syscall: "Recv", PID: pid, Code: code, Err: err}
	}
	m, err := ml.next(ctx, p)
	switch {
	case errors.Is(err, mailbox.ErrClosed):
		return fail(types.ErrBrokenPipe, err)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(types.ErrTimeout, err)
	case err != nil:
		return fail(types.ErrCancelled, err)
	}
	if m.mail == nil {
		return m, nil
	}
	p.post.took(m)
	if ml.records(p) {
		if err = p.rec.Add(step.TakenRecord(m.Seq)); err == nil {
			err = p.rec.Commit()
		}
		if err != nil && p.State() < types.StateZombie { // else the history is closed: what was in it stays
			return nil, err
		}
	}
	return m, nil
}

// next takes the oldest message of a process that Recv may take, waiting for one until ctx ends.
func (ml *mailer) next(ctx context.Context, p *Process) (*Message, error) {
	if !ml.records(p) { // a person says nothing to it
		return p.box.Get(ctx)
	}
	for {
		changed, over := p.box.Changed(), p.box.Closed() // before it is looked at
		found := false
		ms := p.box.Take(func(m *Message) bool {
			first := !found && !isSteer(m)
			found = found || first
			return first
		})
		if len(ms) > 0 {
			return ms[0], nil
		}
		if over {
			return nil, mailbox.ErrClosed
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
