// Package mail carries messages to processes, running or on disk, for clients and for the kernel, and shows what waits in a mailbox.
package mail

import (
	"context"

	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
	"rnix/vfs"
)

// Service answers what concerns messages. Its fields are set before it is registered.
type Service struct {
	Kernel  Kernel
	Stored  Stored
	Finder  Finder
	Secrets Secrets
}

// Kernel has the mailboxes of the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	Info(pid types.PID) (kernel.Info, error)
	ByUUID(id types.UUID) (*kernel.Process, bool)
	Post(ctx context.Context, target types.PID, m step.Mail, wait bool) (uint64, error)
	PostAttached(ctx context.Context, target types.PID, m step.Mail, given []vfs.Attachment, wait bool) (uint64, error)
	MaySend(sender, target types.PID) error
	Delivered(ctx context.Context, pid types.PID, seq uint64) (bool, error)
	RecvContext(ctx context.Context, pid types.PID) (*kernel.Message, error)
	Waiting(pid types.PID) (list []kernel.Waiting, last uint64, err error)
}

// Stored are the histories that do not run.
type Stored interface {
	// Put puts a message into the history of a process that is suspended, with what is shown with it. CONFLICT: somebody else writes it just now. BROKEN_PIPE: it has ended.
	// EXHAUSTED: its mailbox is full.
	Put(ctx context.Context, id types.UUID, m step.Mail, given []vfs.Attachment) (seq uint64, err error)
	// Read returns what its record says of a process.
	Read(ctx context.Context, id types.UUID) (*recovery.State, error)
}

// Finder knows who asks, and what a name means.
type Finder interface {
	// Settled waits until it is known what an earlier daemon has left.
	Settled(ctx context.Context) error
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// Resolve finds a process by what a person calls it.
	Resolve(text string) (service.Target, error)
}

// Secrets are taken out of what is shown. *redact.Set is one.
type Secrets interface {
	Empty() bool
	Bytes(b []byte) []byte
	String(text string) string
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.Send, func(ctx context.Context, peer *ipc.Peer, req ipc.SendRequest) (ipc.SendResponse, error) {
		return d.send(ctx, peer, req, step.MailMessage)
	})
	service.Handle(on, ipc.Steer, func(ctx context.Context, peer *ipc.Peer, req ipc.SendRequest) (ipc.SendResponse, error) {
		return d.send(ctx, peer, req, step.MailSteer)
	})
	service.Handle(on, ipc.Delivered, d.delivered)
	service.Handle(on, ipc.Recv, d.recv)
	service.Handle(on, ipc.Mailbox, d.mailbox)
}
