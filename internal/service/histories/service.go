// Package histories shows what processes have done and said, of their records: steps, calls, conversations, traces, what fills a context, where
// a process comes from. It reads, and changes nothing.
package histories

import (
	"log/slog"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers who reads histories. Its fields are set before it is registered.
type Service struct {
	Journal Journal
	Index   Index
	Kernel  Kernel
	Archive Archive
	Finder  Finder
	Looks   Looks
	Encoder Encoder
	Log     *slog.Logger

	outlines outlines
}

// Journal is where the records are, and what is kept beside them. Each store.Store is one.
type Journal interface {
	step.Journal
	Derived() store.Derived
	Blobs() store.Blobs
	Dir(id types.UUID) string
}

// Index knows the histories on disk. Each store.Index is one.
type Index interface {
	List() []step.ProcInfo
}

// Kernel knows the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
	InfoOf(id types.UUID) (kernel.Info, bool)
}

// Archive knows the histories that are archived, and those that were deleted. *gc.Collector is one.
type Archive interface {
	Archived() []step.Archived
	Deleted() []step.Tomb
}

// Finder finds what a caller names.
type Finder interface {
	// Find finds a process, and refuses what that caller may not see.
	Find(peer *ipc.Peer, op, text string) (service.Target, error)
	// Resolve is Find for who sees only how a process is.
	Resolve(text string) (service.Target, error)
	// Lost says of the error of who reads a history that was there a moment ago what became of it. Any other error goes through.
	Lost(t *service.Target, text string, err error) error
	// Whole returns what a history looks like with its texts in full, which the index cuts.
	Whole(i *step.ProcInfo) *step.ProcInfo
	// Here returns where a path is now that a record names: the data directory may have been moved.
	Here(path string) string
	// Hold keeps a history where it is until release is called.
	Hold(id types.UUID) (release func(), err error)
}

// Looks says how a process looks.
type Looks interface {
	Living(i *kernel.Info) ipc.Proc
	Stored(i *step.ProcInfo) ipc.Proc
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.GetProcDetail, d.describe)
	service.Handle(on, ipc.ListSteps, d.listSteps)
	service.Handle(on, ipc.GetStepDetail, d.stepDetail)
	service.Handle(on, ipc.RawStep, requests{d.past, d.Journal, d.Encoder}.raw)
	service.Handle(on, ipc.ListMessages, d.list)
	service.Handle(on, ipc.ReadAttachment, d.attachment)
	service.Handle(on, ipc.Ledger, d.ledger)
	service.Handle(on, ipc.Lineage, d.lineage)
	service.Handle(on, ipc.ContextProfile, d.profile)
	service.Handle(on, ipc.ExportRun, d.export)
	service.Handle(on, ipc.ShowTrace, tracer{d.past, d.Journal, d.Index, d.Kernel, d.Archive, d.Log}.trace)
}
