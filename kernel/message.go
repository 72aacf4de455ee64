package kernel

import (
	"context"
	"errors"

	"rnix/internal/step"
	"rnix/kernel/internal/mailbox"
	"rnix/types"
	"rnix/vfs"
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
	return k.mail.deliver(context.Background(), sender, target, data, false)
}

// SendContext is Send that waits for room until ctx ends.
func (k *KernelImpl) SendContext(ctx context.Context, sender, target types.PID, data []byte) error {
	return k.mail.deliver(ctx, sender, target, data, true)
}

// Post is SendContext for a message of which more is known than who sends it: m has its kind, its text, and
// what it is to be recognised by. It returns the number of the message. Without wait a full mailbox is
// RESOURCE_EXHAUSTED, as for Send. What comes again with the same key is not put into the mailbox again. A
// process that keeps no messages, such as a supervisor, is INVALID.
func (k *KernelImpl) Post(ctx context.Context, target types.PID, m step.Mail, wait bool) (uint64, error) {
	return k.mail.deliverMail(ctx, target, m, wait)
}

// PostAttached is Post for a message with images and documents, for an agent which lives. They are durable before the message is, which names them, and a message
// that is refused leaves none of them behind.
func (k *KernelImpl) PostAttached(ctx context.Context, target types.PID, m step.Mail, given []vfs.Attachment, wait bool) (uint64, error) {
	return postAttached(ctx, k.mail, target, m, given, wait)
}

// errNoAgent is the cause when a message for an agent is sent to another process.
var errNoAgent = errors.New("it has no model, which could read the message")

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
	return k.mail.recv(ctx, pid)
}
