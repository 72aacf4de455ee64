package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"rnix/internal/step"
	"rnix/kernel/internal/actions"
	"rnix/types"
)

// actingMail is an acting process with its mailbox.
type actingMail acting

var _ actions.Mail = (*actingMail)(nil)

// Send implements actions.Mail.
func (c *actingMail) Send(ctx context.Context, to types.PID, text, key string) (suspended bool, err error) {
	if err := maySend(c.p); err != nil {
		return false, err
	}
	if len(text) > MaxMessage {
		return false, tooLarge(to, len(text))
	}
	m := step.Mail{Kind: step.MailMessage, From: c.p.PID, FromUUID: c.p.UUID, Name: c.p.Name(), Time: time.Now(), Text: text, Key: key}
	t, alive := c.table.get(to)
	if alive {
		if err := c.mail.related(c.p, t); err != nil {
			return false, err
		}
		if t.opts.Body != nil {
			return false, &types.SyscallError{Syscall: "Send", PID: to, Code: types.ErrInvalid, Err: errNoAgent}
		}
		if _, err := c.mail.post(ctx, t, m, false); types.CodeOf(err) != types.ErrBrokenPipe {
			return false, err
		}
	}
	id, ok := c.children.relative(c.p, to)
	switch {
	case !ok && alive:
		return false, sendEnded(to)
	case !ok:
		return false, &types.SyscallError{Syscall: "Send", PID: to, Code: types.ErrNotFound, Err: fmt.Errorf("%w of your family; ps lists those below you", ErrNoProcess)}
	}
	if _, err := c.lifecycle.Post(ctx, id, m); types.CodeOf(err) == types.ErrBrokenPipe {
		return false, sendEnded(to)
	} else if err != nil {
		return false, err
	}
	return true, nil
}

func sendEnded(pid types.PID) error {
	return &types.SyscallError{Syscall: "Send", PID: pid, Code: types.ErrBrokenPipe, Err: errors.New("it has ended")}
}

// Waiting implements actions.Mail.
func (c *actingMail) Waiting() []actions.Letter { return asLetters(mailAtOnce(c.p)) }

// Take implements actions.Mail.
func (c *actingMail) Take(call string, n int) []actions.Letter {
	ms := takeMail(c.p, n)
	c.p.kids.took(call, numbers(ms))
	return asLetters(ms)
}

// TakeEnds implements actions.Mail.
func (c *actingMail) TakeEnds(call string, of []types.UUID) {
	ms := c.p.box.Take(func(m *Message) bool {
		return m.mail != nil && m.mail.Kind == step.MailChild && slices.Contains(of, m.mail.Child)
	})
	c.p.post.took(ms...)
	c.p.kids.took(call, numbers(ms))
}

// Changed implements actions.Mail.
func (c *actingMail) Changed() <-chan struct{} { return c.p.box.Changed() }

// Interrupted implements actions.Mail.
func (c *actingMail) Interrupted() bool { return c.p.box.Has(isSteer) }

func asLetters(ms []*Message) []actions.Letter {
	out := make([]actions.Letter, len(ms))
	for i, m := range ms {
		mail := m.Mail()
		out[i] = actions.Letter{Seq: m.Seq, From: m.From, Name: mail.Name, Text: bounded(m), Attachments: shownWith(ms[i : i+1])}
	}
	return out
}
