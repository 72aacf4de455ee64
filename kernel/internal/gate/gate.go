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
	mu    sync.Mutex
	open  chan struct{} // +checklocks:mu; nil while open, closed when it opens
	since time.Time     // +checklocks:mu; when it was shut
	total time.Duration // +checklocks:mu; time spent shut, finished pauses only
}

// Shut shuts the gate and reports whether it was open.
func (g *Gate) Shut(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		return false
	}
	g.open, g.since = make(chan struct{}), now
	return true
}

// Open opens the gate, wakes whoever waits, and returns how long it was shut. It reports false if it
// was open.
func (g *Gate) Open(now time.Time) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open == nil {
		return 0, false
	}
	close(g.open)
	d := now.Sub(g.since)
	g.open, g.since = nil, time.Time{}
	g.total += d
	return d, true
}

// Since returns when the gate was shut, and whether it is shut.
func (g *Gate) Since() (time.Time, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.since, g.open != nil
}

// Paused returns the whole time spent shut until now.
func (g *Gate) Paused(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open != nil {
		return g.total + now.Sub(g.since)
	}
	return g.total
}

// Wait returns nil when the gate is open, at once if it is, or the cause of ctx's end.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		open := g.open
		g.mu.Unlock()
		if open == nil {
			return context.Cause(ctx)
		}
		select {
		case <-open:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
