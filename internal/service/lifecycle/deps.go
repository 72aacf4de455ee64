package lifecycle

import (
	"context"
	"encoding/json"
	"log/slog"

	"rnix/agent"
	"rnix/internal/launch"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Kernel runs the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	Table
	Process(pid types.PID) (*kernel.Process, bool)
	Subtree(pid types.PID) ([]types.PID, error)
	WaitInfo(ctx context.Context, pid types.PID) (kernel.Info, error)
	SpawnContext(ctx context.Context, intent string, ag *agent.Agent, o kernel.SpawnOpts) (types.PID, error)
	Signal(pid types.PID, sig types.Signal) error
	SignalTree(pid types.PID, sig types.Signal) (int, error)
	Suspend(ctx context.Context, pid types.PID) error
	Rename(pid types.PID, name string) (was string, err error)
	Compact(pid types.PID, focus string) error
	MaySignal(pid types.PID) error
	MaySpawn(pid types.PID) error
	Heartbeats() (beats []kernel.Beat, naps int)
}

// Settled waits until it is known what an earlier daemon has left.
type Settled interface {
	Settled(ctx context.Context) error
}

// Ground is what must be so before a history is found and read.
type Ground interface {
	Settled
	// Hold keeps a history where it is until release is called.
	Hold(id types.UUID) (release func(), err error)
	// Lost says what has become of a process that is archived or was deleted meanwhile; any other error goes through as it is.
	Lost(t *service.Target, text string, err error) error
}

// Start is what must be so before a process is started or resumed.
type Start interface {
	// Ready waits until everything runs without which the daemon must not be.
	Ready(ctx context.Context) error
	// Room refuses a start while the disk has no room for it.
	Room(op string) error
}

// Files makes and removes the directories in which processes work.
type Files interface {
	// Create makes the git work tree of a new process, if it is to have one, and puts it into its options. undo removes it.
	Create(ctx context.Context, cwd string, req *ipc.WorktreeRequest, o *kernel.SpawnOpts) (_ *workspace.Tree, undo func(), err error)
	// Lacks says what of the repository is not in a work tree.
	Lacks(ctx context.Context, id types.UUID, tree *workspace.Tree) []string
	// Fork makes the directory of a fork, with the files of a process as they were at the end of a step; dirs are where it worked then and
	// works now. limited says what is not as it was.
	Fork(ctx context.Context, id types.UUID, of *service.Target, at int, dirs ...string) (dir, limited string, err error)
	ForkDir(id types.UUID) string
	// ForkTree gives a fork of a process with a work tree a branch of its own, and returns its settings, which name the work tree that it has.
	ForkTree(ctx context.Context, id types.UUID, name string, settings json.RawMessage, origin *workspace.Tree, dir string) (json.RawMessage, error)
	// Abandon removes all that there is of a fork that has not begun: its files, its snapshots and, last, its history.
	Abandon(ctx context.Context, id types.UUID) error
}

// Auto knows what is resumed without anybody asking. *autoresume.Service is one.
type Auto interface {
	// Take returns how a process was resumed when the daemon started, once: for the first who asks.
	Take(id types.UUID) (ipc.ResumeResponse, bool)
	// Delayed is closed when a history was resumed that is resumed a little later, or cannot be; nil = it is not.
	Delayed(id types.UUID) <-chan struct{}
}

// Groups finds groups of processes.
type Groups interface {
	// Group finds a group, or makes one and gives it a name.
	Group(op, text, name string) (types.PGID, error)
}

// Costs knows what processes have used.
type Costs interface {
	// Together returns what a history has used itself, and with its descendants, wherever they lie.
	Together(id types.UUID) (own, tree ipc.CostLine)
}

// Deps is what the service needs. The launcher, the configuration and the number of the last event lie below all services.
type Deps struct {
	Names    *Names
	Access   *Access
	Stored   *launch.Stored
	Launcher *launch.Launcher
	Profiles *profile.Reader
	Seq      func() uint64
	// Looks describes a process that lives, as lists show it.
	Looks func(i *kernel.Info) ipc.Proc
	Log   *slog.Logger

	Kernel Kernel
	Ground Ground
	Begin  Start
	Files  Files
	Auto   Auto
	Groups Groups
	Costs  Costs
}
