// Package storage looks after the files of histories: which of them go and which are kept, what takes up the room, what is damaged, and what
// became of one that is not there any more.
package storage

import (
	"context"
	"log/slog"
	"time"

	"rnix/internal/config"
	"rnix/internal/fsck"
	"rnix/internal/gc"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service answers what concerns the files of histories. Its exported fields are set before it is registered.
type Service struct {
	Collector Collector
	Snapshots Snapshots
	Journal   Journal
	Kernel    Kernel
	PIDs      PIDs
	Finder    Finder

	DataDir   string
	Held      func() error // why this program does not have the data directory any more; nil = it has
	Policy    gc.Policy
	Mode      gc.Mode
	Retention config.Problems // why it is not known how long histories are kept; none goes then
	Log       *slog.Logger

	works works
}

// Collector takes histories away, and puts them back. *gc.Collector is one.
type Collector interface {
	Plan(ctx context.Context, now time.Time) (gc.Plan, error)
	Collect(ctx context.Context, req gc.Request) (gc.Result, error)
	Usage(ctx context.Context, snapshots func(types.UUID) int64) (gc.Usage, error)
	Hold(id types.UUID, who string) (release func(), err error)
	Share(id types.UUID, who string) (release func(), err error)
	Keep(id types.UUID, note string, until time.Time) error
	Unkeep(id types.UUID) (bool, error)
	Kept(id types.UUID) (*step.Pin, error)
	Archived() []step.Archived
	Deleted() []step.Tomb
	Explain(id types.UUID) error
	Removable(ctx context.Context, id types.UUID) (gc.Candidate, error)
	Remove(ctx context.Context, id types.UUID, why string) (gc.Done, error)
	Unarchive(ctx context.Context, id types.UUID, lose bool) (gc.Back, error)
}

// Snapshots are those that histories have of their workspaces.
type Snapshots interface {
	// Sweep removes those that no history has any more.
	Sweep(ctx context.Context) (workspace.Swept, error)
	// Room says how much they take up.
	Room(ctx context.Context) (workspace.Room, error)
	// Check returns what says whether one is there and can be read; nil where none are made.
	Check(ctx context.Context) func(types.UUID, step.Snapshot) error
}

// Journal is where the histories are.
type Journal interface {
	fsck.Store
	Dir(id types.UUID) string
}

// Kernel knows the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	List() []kernel.Info
	ByUUID(id types.UUID) (*kernel.Process, bool)
}

// PIDs are the numbers of processes, which are never given twice. *step.PIDs is one.
type PIDs interface {
	Raise(min uint64)
	Settle() error
}

// Finder knows who asks, and what a name means.
type Finder interface {
	// AgentOf returns inside which process a caller runs.
	AgentOf(peer *ipc.Peer) (owner types.PID, inside bool)
	// Resolve finds a process by what a person calls it.
	Resolve(text string) (service.Target, error)
}

// Register registers what the service answers.
func (d *Service) Register(on *service.Wire) {
	service.Handle(on, ipc.GC, d.gc)
	service.Handle(on, ipc.Keep, d.keep)
	service.Handle(on, ipc.Unarchive, d.unarchive)
	service.Handle(on, ipc.Remove, d.remove)
	service.Handle(on, ipc.DU, d.du)
	service.Handle(on, ipc.Fsck, d.fsck)
	service.Handle(on, ipc.StorageProgress, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.ProgressResponse, error) {
		return ipc.ProgressResponse{Works: d.works.all()}, nil
	})
}
