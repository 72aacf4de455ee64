package worktree

import (
	"context"
	"sync"

	"rnix/types"
)

// gate lets readers through together and a writer alone. A writer that waits goes before readers that
// come after it. Its fields are guarded by registry.mu.
type gate struct {
	users   int // who has it, or waits for it
	readers int
	writing bool
	waiting int           // writers
	changed chan struct{} // closed when one of these has changed
}

// registry knows the gates and the fetches of all repositories of this process: several managers can
// work in one repository.
type registry struct {
	mu sync.Mutex
	// By common git directory.
	gates   map[string]*gate      // +checklocks:mu
	flights map[flightKey]*flight // +checklocks:mu
}

var shared = registry{gates: map[string]*gate{}, flights: map[flightKey]*flight{}}

// Enter waits until nobody in this process is at adding or removing a work tree of a repository, which is named by its common git directory, and with alone
// also until nobody lists them or fetches: git fails where it finds one half made. The caller calls leave. CANCELLED: ctx has ended.
func Enter(ctx context.Context, common string, alone bool) (leave func(), err error) {
	return shared.enter(ctx, common, alone)
}

// enter waits for the gate of a repository. The caller calls leave.
func (g *registry) enter(ctx context.Context, repo string, write bool) (leave func(), err error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.gates[repo]
	if e == nil {
		e = &gate{changed: make(chan struct{})}
		g.gates[repo] = e
	}
	e.users++
	if write {
		e.waiting++
	}
	for e.writing || write && e.readers > 0 || !write && e.waiting > 0 {
		changed := e.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
		if ctx.Err() != nil {
			if write {
				e.waiting--
			}
			g.leftLocked(repo, e)
			return nil, types.Errorf(types.ErrCancelled, "Gate", repo, "others add or remove work trees there: %w", context.Cause(ctx))
		}
	}
	if write {
		e.waiting--
		e.writing = true
	} else {
		e.readers++
	}
	return sync.OnceFunc(func() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if write {
			e.writing = false
		} else {
			e.readers--
		}
		g.leftLocked(repo, e)
	}), nil
}

// leftLocked tells those who wait that somebody has left.
//
// +checklocks:g.mu
func (g *registry) leftLocked(repo string, e *gate) {
	close(e.changed)
	e.changed = make(chan struct{})
	if e.users--; e.users == 0 {
		delete(g.gates, repo)
	}
}
