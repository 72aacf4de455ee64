// Package launch starts processes: new ones, and those of histories that do not run. It opens a history, decides with what its process goes on
// or why it cannot, and starts it; it also ends, pauses and renames a history that stays on disk, and keeps the small file up to date by which lists
// find it.
//
// It starts one process at a time: which of a family are started, in which order and for whom, is the business of the services above it.
// Dismiss alone also ends what is suspended below.
package launch

import (
	"context"
	"encoding/json"
	"log/slog"

	"rnix/agent"
	"rnix/internal/profile"
	"rnix/internal/records"
	"rnix/internal/sandbox"
	"rnix/internal/store"
	"rnix/kernel"
	"rnix/types"
)

// Cards keeps the small files of histories, by which lists find them. The record of a history counts; its card is made of it again.
type Cards struct {
	Journal store.Store
	DataDir string // records of a data directory that was moved name the old one
	// Note tells people what was found and mended.
	Note func(format string, args ...any)
}

// Table is the kernel's table of processes.
type Table interface {
	Info(pid types.PID) (kernel.Info, error)
	ByUUID(id types.UUID) (*kernel.Process, bool)
	WaitInfo(ctx context.Context, pid types.PID) (kernel.Info, error)
	SignalTree(pid types.PID, sig types.Signal) (int, error)
	// Renamed tells the last run of a history, which has ended, its new name. It reports whether it has written the small file.
	Renamed(pid types.PID, id types.UUID, name string) (saved bool)
}

// Holds keeps histories where they are: neither archived nor deleted until release is called.
type Holds interface {
	Hold(id types.UUID) (release func(), err error)
}

// Stored opens, ends, pauses and renames histories that do not run.
type Stored struct {
	Cards  *Cards
	Kernel Table
	Store  *records.Store
	Ground Holds
	// Forked reports whether a directory is, or lies in, the one that was made for a history as a fork.
	Forked func(id types.UUID, dir string) bool
}

// Rights says which devices there are, for who is denied some.
type Rights interface {
	CheckDevices(allowed, denied []string) error
	VoidDenials(denied []string) []string
}

// Sandboxes knows how the commands of processes are confined, and how they can be here.
type Sandboxes interface {
	// Fits returns by what this host enforces settings, and what it does not enforce of those that say that this may be so, or refuses those that
	// it cannot enforce, with what to do.
	Fits(s sandbox.Settings) (level sandbox.Level, unheld []string, err error)
	// Below returns the settings of what the commands of a process start: no more than they have themselves.
	Below(pid types.PID) sandbox.Settings
}

// Spawner decides with what a new process is started.
type Spawner struct {
	Kernel    Rights
	Sandboxes Sandboxes
	Log       *slog.Logger
}

// Starter is the kernel as far as it starts processes.
type Starter interface {
	SpawnContext(ctx context.Context, intent string, ag *agent.Agent, o kernel.SpawnOpts) (types.PID, error)
	Info(pid types.PID) (kernel.Info, error)
}

// Sessions opens the session that a platform has for a process before it is started, and is told what became of that.
type Sessions interface {
	Open(ctx context.Context, id types.UUID, p *profile.Profile, provider string) error
	Begun(id types.UUID)
	Ended(id types.UUID)
}

// Budgets knows what histories have used, and what is left.
type Budgets interface {
	// UsedUnder returns what a history, which has used own, and all below it have used.
	UsedUnder(id types.UUID, own kernel.Amount) kernel.Amount
	// Balance returns the limit of a history, and what of it is used; ok is false if it has none.
	Balance(id types.UUID) (limit, used kernel.Amount, ok bool)
}

// Program makes the program of a process without a model again, from what its history keeps of it.
type Program func(p *profile.Profile, spec json.RawMessage) (kernel.Body, error)

// Launcher starts the processes of histories. Its fields are set before it is used.
type Launcher struct {
	Stored    *Stored
	Spawner   *Spawner
	Kernel    Starter
	Profiles  *profile.Reader
	Sessions  Sessions
	Budgets   Budgets
	Programs  map[string]Program // by the kind that step.BodyRecord names
	Snapshots bool               // whether the state of files before a call is kept
	Seq       func() uint64      // the number of the last event
}
