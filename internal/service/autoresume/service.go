// Package autoresume resumes processes without a person asking: what was running when an earlier daemon ended, what has waited for its time or
// for its children, and what waited for a budget that was raised. It also brings to its end what an earlier daemon was ending when it was killed.
//
// It says of each process that it leaves alone why it does.
package autoresume

import (
	"context"
	"encoding/json"
	"sync"
	"time"

	"rnix/internal/launch"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Service resumes processes without a person asking. Its fields are set before it begins.
type Service struct {
	Resumer  Resumer
	Launcher Launcher
	Flows    Flows
	Budgets  Budgets
	Ground   Ground
	Room     Room
	Forks    Forks
	Keys     Keys // nil = nothing waits for keys

	Stored *launch.Stored
	// Max is how many processes are resumed at the start; 0 = none, and none later.
	Max int
	// Note tells people what was found.
	Note func(format string, args ...any)
	// Background is what ends with the context of the daemon.
	Background *sync.WaitGroup

	auto    wentOn
	delayed delayed
	ends    ends
}

// New makes the service. It can be told of ends of runs before it begins.
func New() *Service { return &Service{ends: ends{more: make(chan struct{}, 1)}} }

// Resumer resumes histories. *lifecycle.Resumer is one.
type Resumer interface {
	// Continued resumes a history, with those that wait for it and those for which it waits. still is asked once nobody else can change the
	// history; if it says no, the error is CONFLICT.
	Continued(ctx context.Context, id types.UUID, req *ipc.ResumeRequest, still func(*recovery.State) bool) (ipc.ResumeResponse, error)
}

// Launcher starts the process of one history. *launch.Launcher is one.
type Launcher interface {
	// Start goes on with an opened history, which is closed if that fails. It does not begin before hold is closed.
	Start(ctx context.Context, a *launch.Opened, req *ipc.ResumeRequest, hold <-chan struct{}) (ipc.ResumeResponse, error)
}

// Flows knows what workflows and supervisors have started, and wait for.
type Flows interface {
	// Left returns which children of a workflow or a supervisor that has ended, or is ending, are to be ended with it.
	Left(ctx context.Context, up *step.ProcInfo) []types.UUID
	// Ending reports whether a run of a workflow was ending, how, and with which nodes.
	Ending(s *recovery.State) (exit types.ExitStatus, nodes []types.UUID, ending bool)
	// Awaited returns for which nodes a run of a workflow waits.
	Awaited(spec json.RawMessage, notes map[string]json.RawMessage) []types.UUID
}

// Budgets knows what is left of budgets.
type Budgets interface {
	// Balance returns the limit of a history, and what of it is used; ok is false if it has none.
	Balance(id types.UUID) (limit, used kernel.Amount, ok bool)
}

// Ground is what is known of histories that do not run.
type Ground interface {
	// Settled waits until it is known what an earlier daemon has left.
	Settled(ctx context.Context) error
	// Described describes a history on disk; the error says what has become of one that was taken away.
	Described(id types.UUID) (*step.ProcInfo, error)
}

// Room resumes what a full disk has cut off.
type Room interface {
	// CutBy reports whether a history was cut off by a full disk, and CutOff notes that it was.
	CutBy(info *step.ProcInfo) bool
	CutOff(id types.UUID)
}

// Keys knows the keys of providers.
type Keys interface {
	// There reports whether the provider of a history has its key, without a client.
	There(was *step.Settled) bool
	// KeySource names the command that prints that key, which may show a dialog each time; empty = none does.
	KeySource(was *step.Settled) string
	// KeyMoved returns when a source has brought a key last that is not refused, or a person wanted it to be asked again; zero = never.
	KeyMoved(source string) time.Time
}

// Forks removes forks that were never finished.
type Forks interface {
	Abandon(ctx context.Context, id types.UUID) error
}

// Take returns how a process was resumed when the daemon started, once: for the first who asks.
func (d *Service) Take(id types.UUID) (ipc.ResumeResponse, bool) { return d.auto.take(id) }

// Delayed is closed when a history was resumed that is resumed a little later, or cannot be; nil = it is not.
func (d *Service) Delayed(id types.UUID) <-chan struct{} { return d.delayed.of(id) }

// Ended notes the end of a run: those that wait for it may be resumed. It does not block.
func (d *Service) Ended(id types.UUID) { d.ends.put(id) }
