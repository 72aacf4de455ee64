// Package files is what there is of the files that processes work on: a snapshot after each step, what differs between two, the way back to
// each, and the git work trees that are made for processes, from their making to the merge of their work and their removal behind a rescue.
// How files are kept, internal/workspace knows; whose they are, when they were so and who may have them back is decided here.
package files

import (
	"context"
	"log/slog"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers what concerns the files of processes. Its fields are set before it is registered; TakeUp and Clear, which come earlier,
// need no Kernel.
type Service struct {
	Snapshots *Snapshots
	Trees     *Trees
	Kernel    Kernel
	Histories Histories
	Callers   Callers
	Archived  func(types.UUID) (step.Archived, bool) // the archive of a history
	Log       *slog.Logger
}

// Kernel knows the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
}

// Histories are what is on disk of processes.
type Histories interface {
	Get(id types.UUID) (step.ProcInfo, bool)
	List() []step.ProcInfo
	// Begun reports whether anything of a history was ever written, or is known of it.
	Begun(id types.UUID) bool
	// Trail reads of a history what it says of the files of its process; text is what the caller calls that.
	Trail(ctx context.Context, t *service.Target, text string) (step.Trail, error)
	// WorkDir is where a process works, or did; recorded is what its history says of that.
	WorkDir(t *service.Target, recorded string) string
	// Claimed is an error when the data directory is another daemon's now: then nothing may be written there.
	Claimed() error
	// Reserve keeps all others from a history until release is called: nothing resumes or copies it, nor takes it away. CONFLICT: one of these
	// is at it.
	Reserve(id types.UUID, who string) (release func(), err error)
}

// Callers knows who asks, and what of whom.
type Callers interface {
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// Resolve finds a process by what a person calls it.
	Resolve(text string) (service.Target, error)
	// Find is Resolve for a caller, whom it refuses what that may not see.
	Find(peer *ipc.Peer, op, text string) (service.Target, error)
	// Below reports whether a history is that of a process, or of one below it.
	Below(id types.UUID, top types.PID) bool
}

// Register registers what the service answers.
func (s *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.DiffFiles, s.diff)
	service.Handle(on, ipc.RestoreFiles, s.restore)
	service.Handle(on, ipc.ListWorktrees, s.list)
	service.Handle(on, ipc.ShowWorktree, s.show)
	service.Handle(on, ipc.RemoveWorktree, s.remove)
	service.Handle(on, ipc.Merge, s.merge)
}
