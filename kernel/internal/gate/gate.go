// Package gate is the pause of a process: a gate that is open or closed, where the reasoning loop
// waits, and the time that it has spent closed. A person shuts it; and it is barred while the process has to wait
// for something, such as room on the disk. It is open when neither is so. It knows no process.
package gate

import (
	"context"
	"sync"
	"time"
)

// Gate is open as a zero value. Its lock is a leaf: nothing is called while it is held.
type Gate struct {
	mu sync.Mutex
	// By a person, and since when.
	shut  bool      // +checklocks:mu
	since time.Time // +checklocks:mu
	// What is waited for; empty = it is not barred.
	bar string // +checklocks:mu
	// Closed when it opens; nil while nobody waits.
	opens chan struct{} // +checklocks:mu
	// Since when it is shut or barred; zero = it is open.
	closed time.Time // +checklocks:mu
	// Time spent closed, finished times only.
	total time.Duration // +checklocks:mu
}

// Shut shuts the gate and reports whether it was not shut.
func (g *Gate) Shut(now time.Time) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.shut {
		return false
	}
	g.shut, g.since = true, now
	g.closeLocked(now)
	return true
}

// Bar bars the gate until Bar is called without a reason, and reports whether that changes what it is. A reason is what the
// process waits for.
func (g *Gate) Bar(now time.Time, reason string) (changed bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	changed = (g.bar == "") != (reason == "")
	if g.bar = reason; reason != "" {
		g.closeLocked(now)
	} else if changed {
		g.openLocked(now)
	}
	return changed
}

// Barred returns what the gate is barred for; empty = it is not.
func (g *Gate) Barred() string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bar
}

// Closed reports whether the gate is shut or barred.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.closed.IsZero()
}

// +checklocks:g.mu
func (g *Gate) closeLocked(now time.Time) {
	if g.closed.IsZero() {
		g.closed = now
	}
}

// +checklocks:g.mu
func (g *Gate) openLocked(now time.Time) {
	if g.shut || g.bar != "" {
		return
	}
	if g.opens != nil {
		close(g.opens)
	}
	g.total += max(now.Sub(g.closed), 0) // who opens it may have looked at the clock before who has closed it
	g.opens, g.closed = nil, time.Time{}
}

// Open ends what Shut began, and returns how long it was shut. It reports false if it was not. If the gate is not barred, it
// wakes whoever waits.
func (g *Gate) Open(now time.Time) (time.Duration, bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if !g.shut {
		return 0, false
	}
	d := max(now.Sub(g.since), 0) // as in openLocked
	g.shut, g.since = false, time.Time{}
	g.openLocked(now)
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

// Paused returns the whole time spent closed until now.
func (g *Gate) Paused(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pausedLocked(now)
}

// +checklocks:g.mu
func (g *Gate) pausedLocked(now time.Time) time.Duration {
	if !g.closed.IsZero() {
		return g.total + now.Sub(g.closed)
	}
	return g.total
}

// Wait returns nil when the gate is open, at once if it is, or the cause of ctx's end.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		if g.closed.IsZero() {
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
