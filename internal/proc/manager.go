package proc

import (
	"cmp"
	"log/slog"
	"runtime"
	"slices"
	"sync"

	"rnix/internal/durable"
	"rnix/internal/redact"
	"rnix/types"
)

// Manager starts children and knows those that live. Safe for concurrent use.
type Manager struct {
	Channels Channels // set before the first Start

	registry registry
	cages    cages
	births   births
	log      *slog.Logger
	secrets  *redact.Set    // see Conceal
	jobs     chan func()    // to the launcher; never closed
	quit     chan struct{}  // closed by Close, when no child is left
	work     sync.WaitGroup // starts under way, watchers of children
	own      sync.WaitGroup // launcher, tender of orphans, who waits for the warden's end

	mu sync.Mutex
	// +checklocks:mu
	children map[int]*Child // by pid, until it was waited for
	closed   bool           // +checklocks:mu
	// +checklocks:mu
	still stills

	boxOf   func(Spec) (Box, error)                // see Confine; nil = no child is confined that does not say so
	leaseOf func(types.PID, types.UUID) types.UUID // see LeaseOf; nil = no child acts for a session

	guard *Guard // set before the first Start; nil = no warden
}

// NewManager returns a manager that keeps the identities of its children in dir, which is made if
// need be and belongs to it. It marks all descriptors that this program has inherited, so that
// children do not inherit them in turn. log may be nil. Call BecomeSubreaper before, ReapSurvivors
// after, and Close at the end.
func NewManager(dir string, log *slog.Logger) (*Manager, error) {
	if err := durable.MkdirAll(durable.OS, dir); err != nil {
		return nil, err
	}
	if err := durable.RemoveTemp(durable.OS, dir); err != nil {
		return nil, err
	}
	if log == nil {
		log = slog.New(slog.DiscardHandler)
	}
	keepDescriptors()
	m := &Manager{
		registry: newRegistry(dir),
		cages:    newCages(),
		log:      log,
		jobs:     make(chan func()),
		quit:     make(chan struct{}),
		children: make(map[int]*Child),
		still:    make(stills),
	}
	m.births.registry, m.births.log, m.births.of = m.registry, log, make(map[types.PID]int)
	m.births.places, m.births.bounding.set, m.births.bounding.told = ownPlaces, make(map[types.PID]types.Bounds), make(map[types.PID]Hits)
	join(m)
	m.own.Go(m.launch) // ended by quit, waited for by Close
	if isSubreaper() {
		m.own.Go(m.tendOrphans) // ended by quit, waited for by Close
	}
	return m, nil
}

// Conceal has m take the secrets of a set out of what shells write, of what all other children but git write to standard error, and of the
// command lines that it keeps. Git says what files hold, and these stay as they are. It is called before the first Start.
func (m *Manager) Conceal(secrets *redact.Set) { m.secrets = secrets }

// launch forks for everybody, on one thread that lives as long as the manager: the kernel sends a
// child its death signal when the thread that forked it ends, not when the program does.
func (m *Manager) launch() {
	runtime.LockOSThread() // never unlocked: the thread ends with this goroutine
	for {
		select {
		case job := <-m.jobs:
			job()
		case <-m.quit:
			return
		}
	}
}

// Close stops every child, each with its own grace, waits for all of them, and ends the manager.
// Later starts are refused.
func (m *Manager) Close() {
	m.mu.Lock()
	again := m.closed
	m.closed = true
	m.mu.Unlock()
	m.stop(m.matching(func(*Child) bool { return true }))
	m.work.Wait() // a start under way sees that we are closed, and kills its own child
	if !again {
		close(m.quit)
		if m.guard != nil {
			_ = m.guard.socket.Close() // what was told stays told
		}
	}
	m.own.Wait()
	m.births.close()
	leave(m)
}

// KillOwner stops every child of an owner, each with its own grace, and waits for them. A start for the owner that is under way counts, from
// the moment at which it runs; the caller sees to it that none begins later.
func (m *Manager) KillOwner(owner types.PID) {
	m.mu.Lock()
	delete(m.still, owner)
	m.mu.Unlock()
	family.forking.Lock() // who runs already is among the children then
	children := m.of(owner)
	family.forking.Unlock()
	m.stop(children)
	m.births.over(owner)
}

func (m *Manager) stop(children []*Child) {
	for _, c := range children {
		c.end(Stopped, c.spec.Grace)
	}
	for _, c := range children {
		c.Wait()
	}
}

// Children returns the living children of an owner, oldest first.
func (m *Manager) Children(owner types.PID) []Info { return infos(m.of(owner)) }

// All returns all living children, oldest first.
func (m *Manager) All() []Info { return infos(m.matching(func(*Child) bool { return true })) }

func infos(children []*Child) []Info {
	out := make([]Info, len(children))
	for i, c := range children {
		out[i] = c.Info()
	}
	return out
}

func (m *Manager) of(owner types.PID) []*Child {
	return m.matching(func(c *Child) bool { return c.spec.Owner == owner })
}

// matching returns the children that match, oldest first.
func (m *Manager) matching(match func(*Child) bool) []*Child {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []*Child
	for _, c := range m.children {
		if match(c) {
			out = append(out, c)
		}
	}
	slices.SortFunc(out, func(a, b *Child) int {
		return cmp.Or(a.started.Compare(b.started), cmp.Compare(a.process.Pid, b.process.Pid))
	})
	return out
}
