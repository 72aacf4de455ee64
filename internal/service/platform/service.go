// Package platform keeps the sessions that processes have with a platform: it claims them, holds their processes while a lease is not
// confirmed, ends those that have lost theirs, and tells what is left to tell of those that have ended. How one session is kept, and what the
// platform is told of it, is the engine's (internal/platform).
package platform

import (
	"context"
	"log/slog"
	"path/filepath"
	"sync"
	"time"

	"rnix/internal/event"
	engine "rnix/internal/platform"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// Service has the sessions of all processes. It answers no call of the wire: processes are started with a session, and lists show it. Its
// exported fields are set before the first session is claimed. Safe for concurrent use; made by New.
type Service struct {
	Kernel    Kernel
	Processes Processes
	Journal   Journal
	Index     Index
	Events    Events
	Log       *slog.Logger

	dir    string // of the sessions' journals, each in a directory with the name of its process
	open   table
	claims claims

	work sync.WaitGroup  // sessions that are being given back, and what is told of processes that have ended; see Stop
	life context.Context // of what is told of processes that have ended
	end  context.CancelFunc

	claim func(context.Context, engine.Config) (lease, error) // engine.Open
	tell  func(context.Context, engine.Config) (int, error)   // engine.Settle
}

// Kernel has the processes that live. *kernel.KernelImpl is one.
type Kernel interface {
	Info(pid types.PID) (kernel.Info, error)
	ByUUID(id types.UUID) (*kernel.Process, bool)
	// Terminate ends a process in order, whatever signals it blocks.
	Terminate(pid types.PID) error
	// Hold makes a process, and all below it, stand still, or lets them go on: what they wait for, it asks Waits.
	Hold(pid types.PID, held bool) error
	// Revoke ends a process, and all below it, at once.
	Revoke(pid types.PID, why string) error
}

// Processes are told what becomes of their sessions.
type Processes interface {
	// Say gives a process a message of a person, durably. The error says that it will never take it; key names the message.
	Say(ctx context.Context, id types.UUID, key, text string) error
	// Bound has the OS children that act for a session end if left passes without another call; 0 = they need not any more.
	Bound(id types.UUID, left time.Duration)
	// Confirmed notes when the platform has confirmed the lease of a session, in ms since 1970.
	Confirmed(id types.UUID, at int64)
}

// Journal is where the records are. Each store.Store is one.
type Journal interface {
	Dir(id types.UUID) string
}

// Index knows the histories on disk. Each store.Index is one.
type Index interface {
	Get(id types.UUID) (step.ProcInfo, bool)
}

// Events takes what has happened. *event.Log is one.
type Events interface {
	Append(e event.Event) uint64
}

// lease is a session as it is kept. *engine.Session is one.
type lease interface {
	Record(rec *step.Record)
	Standing() engine.Standing
	Owns() (ours bool, changed <-chan struct{})
	Lost() (lost, stop bool)
	Ended() bool
	State() engine.State
	Close(ctx context.Context) error
}

// New makes a service without sessions, with journals below dir.
func New(dir string) *Service {
	s := &Service{dir: dir, claim: claimed, tell: engine.Settle}
	s.life, s.end = context.WithCancel(context.Background())
	return s
}

func claimed(ctx context.Context, cfg engine.Config) (lease, error) {
	l, err := engine.Open(ctx, cfg)
	if err != nil {
		return nil, err // no lease that holds a nil session
	}
	return l, nil
}

// journalOf returns the directory of the journal of a process.
func (s *Service) journalOf(id types.UUID) string { return filepath.Join(s.dir, id.String()) }

// Stop waits until all sessions are given back: at most 2 s for what is told, and 10 s for the leases.
func (s *Service) Stop() error {
	s.end()
	if n := s.claims.count(); n > 0 {
		s.Log.Info("the platform is given its sessions back; what it does not take within 12 s is left for the next daemon", "sessions", n)
	}
	s.work.Wait()
	return nil
}
