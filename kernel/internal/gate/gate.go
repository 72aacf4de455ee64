// Package gate is the pause of a process: a gate that is open or shut, where the reasoning loop
// waits, and the time that it has spent shut. It knows no process.
package gate

import (
	"context"
	"sync"
	"time"
)

// Gate is open as a zero value. Its lock is a leaf: nothing is called while it is held.
type Gate struct {
	mu   sync.Mutex
	shut bool // +checklocks:mu
	// Closed when it opens; nil while nobody waits.
	opens chan struct{} // +checklocks:mu
	// When it was shut.
	since time.Time // +checklocks:mu
	// Time spent shut, finished pauses only.
	total time.Duration // +checklocks:mu
}

// Shut shuts the gate and reports whether it was open.
func (g *Gate) Shut(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.shut, g.since = true, now
	return true
}

// Open opens the gate, wakes whoever waits, and returns how long it was shut. It reports false if it
// was open.
func (g *Gate) Open(now time.Time) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		return 0, false
	}
	if g.opens != nil {
		close(g.opens)
	}
	d := max(now.Sub(g.since), 0) // who opens it may have looked at the clock before who has shut it
	g.shut, g.opens, g.since = false, nil, time.Time{}
	g.total += d
	return d, true
}

// Since returns when the gate was shut, and whether it is shut.
func (g *Gate) Since() (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.since, g.shut
}

// State is Since and Paused of one moment.
func (g *Gate) State(now time.Time) (since time.Time, shut bool, paused time.Duration) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.since, g.shut, g.pausedLocked(now)
}

// Paused returns the whole time spent shut until now.
func (g *Gate) Paused(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pausedLocked(now)
}

// +checklocks:g.mu
func (g *Gate) pausedLocked(now time.Time) time.Duration {
	if g.shut {
		return g.total + now.Sub(g.since)
	}
	return g.total
}

// Wait returns nil when the gate is open, at once if it is, or the cause of ctx's end.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		if !g.shut {
			g.mu.Unlock()
			return context.Cause(ctx)
		}
		if g.opens == nil {
			g.opens = make(chan struct{})
		}
		opens := g.opens
		g.mu.Unlock()
		select {
		case <-opens:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
