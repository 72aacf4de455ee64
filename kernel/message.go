package kernel

import (
	"context"
	"errors"

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

// Message is what one process sends to another.
type Message struct {
	Seq  uint64    // grows over all messages of the kernel
	From types.PID // 0 = the kernel or a person
	Data []byte
}

// Send puts data into the mailbox of a process. A full mailbox is RESOURCE_EXHAUSTED, one of a process
// that has ended BROKEN_PIPE, and one of a process that was reaped NOT_FOUND. The caller must not change data afterwards.
func (k *KernelImpl) Send(sender, target types.PID, data []byte) error {
	p, err := k.table.lookup("Send", target)
	if err != nil {
		return err
	}
	err = p.box.Put(&Message{Seq: k.msgSeq.Add(1), From: sender, Data: data})
	switch {
	case errors.Is(err, mailbox.ErrFull):
		return &types.SyscallError{Syscall: "Send", PID: target, Code: types.ErrExhausted, Err: err}
	case errors.Is(err, mailbox.ErrClosed):
		return &types.SyscallError{Syscall: "Send", PID: target, Code: types.ErrBrokenPipe, Err: err}
	}
	return err
}

// Recv takes the oldest message of a process, waiting for one until the process ends. What was sent
// before the end can be taken until the process is reaped; then it is BROKEN_PIPE.
func (k *KernelImpl) Recv(pid types.PID) (*Message, error) {
	p, err := k.table.lookup("Recv", pid)
	if err != nil {
		return nil, err
	}
	m, err := p.box.Get(context.Background())
	if err != nil {
		return nil, &types.SyscallError{Syscall: "Recv", PID: pid, Code: types.ErrBrokenPipe, Err: err}
	}
	return m, nil
}
