package kernel

import (
	"context"
	"errors"
	"strconv"
	"time"

	"rnix/internal/step"
	"rnix/kernel/internal/mailbox"
	"rnix/types"
)

// IPCManager carries data between processes.
type IPCManager interface {
	// Send puts data into the mailbox of a process.
	Send(sender, target types.PID, data []byte) error
	// Recv takes the oldest message of a process.
	Recv(pid types.PID) (*Message, error)
	// Pipe connects two processes.
	Pipe(writer, reader types.PID) (writeFD, readFD types.FD, err error)
}

var _ IPCManager = (*KernelImpl)(nil)

// MaxMessage is the size of the largest message, in bytes.
const MaxMessage = 1 << 20

// Message is what one process sends to another.
type Message struct {
	Seq  uint64    // of the messages to one process, from 1, over all its runs
	From types.PID // 0 = the kernel or a person
	Data []byte

	mail *step.Mail // what else is known, without the text; nil for a message that is in memory only
}

// Send puts data into the mailbox of a process. If the process is an agent whose history is kept, the
// message is in that history, durably, when Send returns nil: it survives a restart and is delivered once.
// Else it is in memory, and the caller must not change data afterwards.
//
// A full mailbox is RESOURCE_EXHAUSTED, one of a process that is ending or has ended BROKEN_PIPE, and one of
// a process that was reaped NOT_FOUND. More than MaxMessage bytes are INVALID.
func (k *KernelImpl) Send(sender, target types.PID, data []byte) error {
	return sendBy(context.Background(), k, sender, target, data, false)
}

// SendContext is Send that waits for room until ctx ends.
func (k *KernelImpl) SendContext(ctx context.Context, sender, target types.PID, data []byte) error {
	return sendBy(ctx, k, sender, target, data, true)
}

func sendBy(ctx context.Context, k *KernelImpl, sender, target types.PID, data []byte, wait bool) error {
	_, err := sends(k, sender, target, string(data), wait, func() (uint64, error) { return k.send(ctx, sender, target, data, wait) })
	return err
}

// sends traces the sending of a message.
func sends(k *KernelImpl, sender, target types.PID, text string, wait bool, send func() (uint64, error)) (seq uint64, err error) {
	c := k.tracer.call(k.table.caller(sender), "Send", "")
	_, err = c.does(wait, target.String()+", "+k.tracer.brief(text), func() (string, error) {
		seq, err = send()
		return "message " + strconv.FormatUint(seq, 10), err
	})
	return seq, err
}

// send is SendContext that returns the number of the message; without wait it does not wait for room.
func (k *KernelImpl) send(ctx context.Context, sender, target types.PID, data []byte, wait bool) (uint64, error) {
	p, err := k.table.lookup("Send", target)
	if err != nil {
		return 0, err
	}
	if len(data) > MaxMessage {
		return 0, tooLarge(target, len(data))
	}
	if k.records(p) {
		m := k.mailFrom(sender)
		m.SetBytes(data)
		return k.post(ctx, p, m, wait)
	}
	m := &Message{Seq: p.post.seq.Add(1), From: sender, Data: data}
	if wait {
		err = p.box.PutWait(ctx, m)
	} else {
		err = p.box.Put(m)
	}
	return m.Seq, sendError(target, err)
}

// Post is SendContext for a message of which more is known than who sends it: m has its kind, its text, and
// what it is to be recognised by. It returns the number of the message. Without wait a full mailbox is
// RESOURCE_EXHAUSTED, as for Send. What comes again with the same key is not put into the mailbox again. A
// process that keeps no messages, such as a supervisor, is INVALID.
func (k *KernelImpl) Post(ctx context.Context, target types.PID, m step.Mail, wait bool) (uint64, error) {
	return sends(k, m.From, target, string(m.Bytes()), wait, func() (uint64, error) { return sendMail(ctx, k, target, m, wait) })
}

func sendMail(ctx context.Context, k *KernelImpl, target types.PID, m step.Mail, wait bool) (uint64, error) {
	p, err := k.table.lookup("Send", target)
	if err != nil {
		return 0, err
	}
	if p.opts.Body != nil {
		return 0, &types.SyscallError{Syscall: "Send", PID: target, Code: types.ErrInvalid, Err: errNoAgent}
	}
	if n := len(m.Bytes()); n > MaxMessage {
		return 0, tooLarge(target, n)
	}
	return k.post(ctx, p, m, wait)
}

// errNoAgent is the cause when a message for an agent is sent to another process.
var errNoAgent = errors.New("it has no model, which could read the message")

// mailFrom begins a message of a process.
func (k *KernelImpl) mailFrom(sender types.PID) step.Mail {
	m := step.Mail{Kind: step.MailMessage, From: sender, Time: time.Now()}
	if s, ok := k.table.get(sender); ok {
		m.FromUUID, m.Name = s.UUID, s.Name()
	}
	return m
}

func tooLarge(target types.PID, n int) error {
	e := types.Errorf(types.ErrInvalid, "Send", "", "the message has %d bytes and at most %d are taken: put the text into a file and send its name", n, MaxMessage)
	e.PID = target
	return e
}

// sendError gives an error of a mailbox its code.
func sendError(target types.PID, err error) error {
	fail := func(code types.ErrCode) error {
		return &types.SyscallError{Syscall: "Send", PID: target, Code: code, Err: err}
	}
	switch {
	case err == nil:
		return nil
	case errors.Is(err, mailbox.ErrFull):
		return fail(types.ErrExhausted)
	case errors.Is(err, mailbox.ErrClosed):
		return fail(types.ErrBrokenPipe)
	case errors.Is(err, context.DeadlineExceeded):
		return fail(types.ErrTimeout)
	case types.CodeOf(err) == types.ErrInternal: // of a context
		return fail(types.ErrCancelled)
	}
	return err
}

// Recv takes the oldest message of a process, waiting for one until the process ends. What was sent
// before the end can be taken until the process is reaped; then it is BROKEN_PIPE. What a person has told an
// agent to do is for its model, and is not taken.
func (k *KernelImpl) Recv(pid types.PID) (*Message, error) {
	return k.RecvContext(context.Background(), pid)
}

// RecvContext is Recv that waits until ctx ends: TIMEOUT or CANCELLED.
func (k *KernelImpl) RecvContext(ctx context.Context, pid types.PID) (*Message, error) {
	c := k.tracer.call(k.table.caller(pid), "Recv", "")
	if c.p != nil && c.p.box.Len() == 0 {
		c.begins(pid.String())
	}
	m, err := recv(ctx, k, pid)
	result := ""
	if err == nil {
		result = "message " + strconv.FormatUint(m.Seq, 10) + " from " + m.From.String()
	}
	c.ends(pid.String(), result, err)
	return m, err
}

func recv(ctx context.Context, k *KernelImpl, pid types.PID) (*Message, error) {
	p, err := k.table.lookup("Recv", pid)
	if err != nil {
		return nil, err
	}
	fail := func(code types.ErrCode, err error) (*Message, error) {
		return nil, &types.SyscallError{Syscall: "Recv", PID: pid, Code: code, Err: err}
	}
	m, err := k.next(ctx, p)
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
	if k.records(p) {
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
func (k *KernelImpl) next(ctx context.Context, p *Process) (*Message, error) {
	if !k.records(p) { // a person says nothing to it
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
