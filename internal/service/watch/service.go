// Package watch shows who watches what is going on: the table of processes, as it is and as it changes, and the events of processes, those
// that come and those that were. It changes nothing, and costs next to nothing while nobody watches.
package watch

import (
	"context"
	"time"

	"rnix/internal/event"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers list_procs, watch_procs and events. Its fields are set before it is registered; Touch may be called before.
type Service struct {
	Kernel  Kernel
	Index   Index
	Archive Archive
	Looks   Looks
	Callers Callers
	Files   Files
	Log     *event.Log
	Started time.Time // what is older in the files of histories an earlier daemon has written

	hub hub
}

// Kernel knows the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
	Info(pid types.PID) (kernel.Info, error)
	InfoOf(id types.UUID) (kernel.Info, bool)
	Listen() *kernel.Listener
	Hear(id types.UUID, h *kernel.Heard, upTo uint64) (said []event.Event, more bool)
}

// Index knows the histories on disk. Each store.Index is one.
type Index interface {
	List() []step.ProcInfo
	Open() []step.ProcInfo // those that have not ended
	Get(id types.UUID) (step.ProcInfo, bool)
}

// Archive knows the histories that are archived.
type Archive interface {
	Archived() []step.Archived
	Find(id types.UUID) (step.Archived, bool)
}

// Looks says how a process looks, and what has changed of it that no event tells.
type Looks interface {
	Living(i *kernel.Info) ipc.Proc
	Stored(i *step.ProcInfo) ipc.Proc
	// Children returns for each process that has OS children a text that changes with them.
	Children() map[types.PID]string
	// Sessions returns the processes that a platform knows.
	Sessions() []types.UUID
}

// Callers knows who asks, and what of whom.
type Callers interface {
	// AgentOf returns the process inside which a caller runs; 0 = it is not known which.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// Find finds the process that a caller names, and refuses what that caller may not see.
	Find(peer *ipc.Peer, op, text string) (Found, error)
	// Await is Find for who follows the process to its end: what an earlier daemon has left, and is resumed now or a little later, runs
	// when it returns.
	Await(ctx context.Context, peer *ipc.Peer, op, text string) (Found, error)
	// Settled waits a moment until it is known what an earlier daemon has left.
	Settled(ctx context.Context)
}

// Found is a process that a caller has named.
type Found struct {
	UUID types.UUID
	PID  types.PID
	Live bool // it runs
}

// Files are those in which the events of histories are. *event.Files is one.
type Files interface {
	Written() uint64 // the number of the last event that is in its file
	Path(id types.UUID) string
}

// Register registers what the service answers.
func (w *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.ListProcs, w.list)
	service.Stream(on, ipc.WatchProcs, w.watch)
	service.Stream(on, ipc.Events, w.streamEvents)
}

// Touch notes that something of a process may have changed of which no event tells. It never blocks, and takes no lock but a leaf.
func (w *Service) Touch(id types.UUID) { w.hub.touch(id) }
