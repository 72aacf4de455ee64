package platform

import (
	"context"
	"fmt"
	"log/slog"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"rnix/internal/config"
	"rnix/internal/event"
	engine "rnix/internal/platform"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// world is what a service needs, and the platform. Process n has UUID id(n) and PID n.
type world struct {
	dir     string
	parents map[types.PID]types.PID // of those that live
	stored  map[types.UUID]step.ProcInfo

	mu     sync.Mutex
	did    []string                                          // +checklocks:mu
	leases map[string]*fake                                  // +checklocks:mu
	claim  func(engine.Config) error                         // called before a session is claimed; nil = it is free
	tell   func(context.Context, engine.Config) (int, error) // nil = the platform takes all
}

func id(n types.PID) types.UUID { return types.UUID{6: 0x70, 8: 0x80, 15: byte(n)} }

func newWorld(t *testing.T) (*world, *Service) {
	w := &world{dir: t.TempDir(), parents: map[types.PID]types.PID{}, stored: map[types.UUID]step.ProcInfo{}, leases: map[string]*fake{}}
	s := New(filepath.Join(w.dir, "sessions"))
	s.Kernel, s.Processes, s.Journal, s.Index, s.Events, s.Log = w, w, w, w, w, slog.New(slog.DiscardHandler)
	s.claim = func(_ context.Context, cfg engine.Config) (lease, error) {
		if w.claim != nil {
			if err := w.claim(cfg); err != nil {
				return nil, err
			}
		}
		l := &fake{cfg: cfg, changed: make(chan struct{}), at: state{standing: engine.Standing{Ours: true, Token: 1, Left: time.Minute}}}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.leases[cfg.SessionID] = l
		return l, nil
	}
	s.tell = func(ctx context.Context, cfg engine.Config) (int, error) {
		w.note("tell " + cfg.SessionID)
		if w.tell == nil {
			return 0, nil
		}
		return w.tell(ctx, cfg)
	}
	return w, s
}

// request asks for a session of a platform.
func request(session string) Request {
	cfg := &config.Platform{}
	cfg.URL.V = "http://platform.test"
	return Request{Session: session, Issue: "I-" + session, Config: cfg, Lookup: func(string) (string, bool) { return "", false }}
}

// opened has a process take a session.
func (w *world) opened(t *testing.T, s *Service, n types.PID, session string) *fake {
	t.Helper()
	if err := s.Open(t.Context(), id(n), request(session)); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.leases[session]
}

func (w *world) note(what string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.did = append(w.did, what)
}

// done returns what was done since the last time.
func (w *world) done() []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	did := slices.Clone(w.did)
	w.did = nil
	return did
}

func (w *world) Info(pid types.PID) (kernel.Info, error) {
	up, ok := w.parents[pid]
	if !ok {
		return kernel.Info{}, types.Errorf(types.ErrNotFound, "Info", "", "no such process")
	}
	i := kernel.Info{ProcStatus: types.ProcStatus{PID: pid, UUID: id(pid), PPID: up}}
	if up != 0 {
		i.ParentUUID = id(up)
	}
	return i, nil
}

func (w *world) ByUUID(id types.UUID) (*kernel.Process, bool) {
	pid := types.PID(id[15])
	if _, ok := w.parents[pid]; !ok {
		return nil, false
	}
	return &kernel.Process{PID: pid, UUID: id}, true
}

func (w *world) Terminate(pid types.PID) error {
	w.note(fmt.Sprintf("terminate %d", pid))
	return nil
}

func (w *world) Hold(pid types.PID, held bool) error {
	w.note(fmt.Sprintf("hold %d %v", pid, held))
	return nil
}

func (w *world) Revoke(pid types.PID, _ string) error {
	w.note(fmt.Sprintf("revoke %d", pid))
	return nil
}

func (w *world) Say(_ context.Context, id types.UUID, key, text string) error {
	w.note(fmt.Sprintf("say %d %s %s", id[15], key, text))
	return nil
}

func (w *world) Bound(id types.UUID, left time.Duration) {
	w.note(fmt.Sprintf("bound %d %v", id[15], left))
}

func (w *world) Confirmed(id types.UUID, at int64) {
	w.note(fmt.Sprintf("confirmed %d %d", id[15], at))
}

func (w *world) Dir(id types.UUID) string { return filepath.Join(w.dir, "histories", id.String()) }

func (w *world) Get(id types.UUID) (step.ProcInfo, bool) { i, ok := w.stored[id]; return i, ok }

func (w *world) Append(e event.Event) uint64 {
	w.note(fmt.Sprintf("event %d %s %s", e.PID, e.Name, e.Result))
	return 0
}

// fake is a session of which a test says how it stands.
type fake struct {
	cfg     engine.Config
	changed chan struct{}
	close   func(context.Context) // nil = it is given back at once

	mu sync.Mutex
	at state // +checklocks:mu
}

// state is how a session stands.
type state struct {
	standing engine.Standing
	lost     bool
	stop     bool
	over     bool
	pending  int
}

func (f *fake) now() state {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.at
}

// is says how a session stands from now on.
func (f *fake) is(change func(*state)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(&f.at)
}

func (f *fake) Record(*step.Record) { f.is(func(at *state) { at.pending++ }) }

func (f *fake) Standing() engine.Standing { return f.now().standing }

func (f *fake) Owns() (ours bool, changed <-chan struct{}) { return f.now().standing.Ours, f.changed }

func (f *fake) Lost() (lost, stop bool) { return f.now().lost, f.now().stop }

func (f *fake) Ended() bool { return f.now().over }

func (f *fake) State() engine.State {
	return engine.State{SessionID: f.cfg.SessionID, FencingToken: f.now().standing.Token, Pending: f.now().pending}
}

func (f *fake) Close(ctx context.Context) error {
	if f.close != nil {
		f.close(ctx)
	}
	return nil
}
