package platform

import (
	"context"
	"sync"

	"rnix/types"
)

// claims say which process of this daemon has a session of the platform, by the session's name: two would take it from each other.
type claims struct {
	mu sync.Mutex
	by map[string]*claim // +checklocks:mu
}

// claim is that a process has a session, or that what is left to tell of it is told.
type claim struct {
	by    types.UUID
	yield context.CancelFunc // makes it end soon; nil = a process has it, and keeps it; guarded by claims.mu
	gone  chan struct{}      // closed when it has ended
}

// take takes a session for a process, and waits for a claim that is about to end. CONFLICT if another process has it.
// With yield, a process that asks for the session makes this claim end; without, it is such a process.
func (c *claims) take(ctx context.Context, session string, id types.UUID, yield context.CancelFunc) (*claim, error) {
	for {
		had, ending, mine := c.tryTake(session, id, yield)
		if mine != nil {
			return mine, nil
		}
		if ending == nil {
			return nil, types.Errorf(types.ErrConflict, "Spawn", session, "process %s has the session already: wait until it has ended, or name another session", had.by)
		}
		if yield == nil {
			ending()
		}
		select {
		case <-had.gone:
		case <-ctx.Done():
			return nil, types.Errorf(types.ErrCancelled, "Spawn", session, "it is being given back: %w", context.Cause(ctx))
		}
	}
}

// tryTake takes a session that is free. Else it returns the claim there is, and what makes that end; nil = it stays.
func (c *claims) tryTake(session string, id types.UUID, yield context.CancelFunc) (had *claim, ending context.CancelFunc, mine *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if had = c.by[session]; had != nil {
		return had, had.yield, nil
	}
	if c.by == nil {
		c.by = map[string]*claim{}
	}
	mine = &claim{by: id, yield: yield, gone: make(chan struct{})}
	c.by[session] = mine
	return nil, nil, mine
}

// ends says that a claim is about to end: who asks for the session waits for it.
func (c *claims) ends(mine *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	mine.yield = func() {} // it takes as long as it takes
}

// drop ends a claim.
func (c *claims) drop(session string, mine *claim) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.by, session)
	close(mine.gone)
}

// keeps reports whether a process that runs, or is about to, has a session.
func (c *claims) keeps(id types.UUID) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, had := range c.by {
		if had.by == id && had.yield == nil {
			return true
		}
	}
	return false
}

func (c *claims) count() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.by)
}
