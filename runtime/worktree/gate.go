package worktree

import (
	"context"
	"sync"

	"rnix/internal/plumbing"
	"rnix/types"
)

// An entry is what somebody wants to do in a repository while others are at its work trees.
type entry int

const (
	toRead  entry = iota // lists the work trees: together with others that do, and with fetches
	toFetch              // the same, and may take as long as a remote does
	toWrite              // adds or removes a work tree: alone
	toEdit               // the same, but beside fetches
)

// gate lets readers and fetches through together and a writer alone. A writer that waits goes before others that
// come after it. Its fields are guarded by registry.mu.
type gate struct {
	users   int // who has it, or waits for it
	inside  [toEdit + 1]int
	waiting [toEdit + 1]int
	changes int           // so many writers have been let in
	changed chan struct{} // closed when one of these has changed
}

// free reports whether a newcomer finds nobody inside, or before it, who keeps it out.
func (g *gate) free(what entry) bool {
	if g.inside[toWrite]+g.inside[toEdit] > 0 {
		return false
	}
	switch what {
	case toRead: // a writer that a fetch keeps out gains nothing if this one waits too
		return g.waiting[toEdit] == 0 && (g.waiting[toWrite] == 0 || g.inside[toFetch] > 0)
	case toFetch:
		return g.waiting[toEdit]+g.waiting[toWrite] == 0
	case toEdit:
		return g.inside[toRead] == 0
	}
	return g.inside[toRead]+g.inside[toFetch] == 0
}

// registry knows the gates and the fetches of all repositories of this process: several managers can
// work in one repository.
type registry struct {
	mu sync.Mutex
	// By common git directory, without links.
	gates   map[string]*gate      // +checklocks:mu
	flights map[flightKey]*flight // +checklocks:mu
}

var shared = registry{gates: map[string]*gate{}, flights: map[flightKey]*flight{}}

// Enter waits until nobody in this process is at adding or removing a work tree of a repository, which is named by its common git directory, and with alone
// also until nobody lists them: git fails where it finds one half made. It does not wait for fetches, which can take a minute, but for one that tries again
// since it met a work tree half made; who adds or removes one by a Manager waits for all. Nobody enters a gate in which it is. The caller calls leave. CANCELLED: ctx has ended.
func Enter(ctx context.Context, common string, alone bool) (leave func(), err error) {
	what := toRead
	if alone {
		what = toEdit
	}
	left, err := shared.enter(ctx, common, what)
	return func() { left() }, err
}

// enter waits for the gate of a repository. The caller calls leave, which says whether writers were let in meanwhile.
func (g *registry) enter(ctx context.Context, repo string, what entry) (leave func() (changed bool), err error) {
	key := plumbing.Resolved(repo)
	g.mu.Lock()
	defer g.mu.Unlock()
	e := g.gates[key]
	if e == nil {
		e = &gate{changed: make(chan struct{})}
		g.gates[key] = e
	}
	e.users++
	e.waiting[what]++
	for !e.free(what) {
		changed := e.changed
		g.mu.Unlock()
		select {
		case <-changed:
		case <-ctx.Done():
		}
		g.mu.Lock()
		if ctx.Err() != nil {
			e.waiting[what]--
			g.leftLocked(key, e)
			return nil, types.Errorf(types.ErrCancelled, "Gate", repo, "others add or remove work trees there: %w", context.Cause(ctx))
		}
	}
	e.waiting[what]--
	if what >= toWrite {
		e.changes++
	}
	e.inside[what]++
	before := e.changes
	return sync.OnceValue(func() bool {
		g.mu.Lock()
		defer g.mu.Unlock()
		e.inside[what]--
		g.leftLocked(key, e)
		return e.changes != before
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
