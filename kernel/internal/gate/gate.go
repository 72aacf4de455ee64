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
	// What is waited for, and since when; empty = it is not barred.
	bar    string    // +checklocks:mu
	barred time.Time // +checklocks:mu
	// A person is asked something: time does not count, and the gate is open all the same.
	still bool // +checklocks:mu
	// Closed when it opens; nil while nobody waits.
	opens chan struct{} // +checklocks:mu
	// Since when time does not count; zero = it does.
	stood time.Time // +checklocks:mu
	// Time that did not count, finished times only.
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
	if changed = (g.bar == "") != (reason == ""); changed {
		g.barred = now
	}
	if g.bar = reason; reason != "" {
		g.closeLocked(now)
	} else if changed {
		g.openLocked(now)
	}
	return changed
}

// Barred returns what the gate is barred for, and since when; empty = it is not.
func (g *Gate) Barred() (reason string, since time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.bar, g.barred
}

// Still says that time does not count from now on, without closing the gate, or that it counts again if nothing else keeps it from that.
func (g *Gate) Still(now time.Time, still bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.still = still; still {
		g.closeLocked(now)
	} else {
		g.countLocked(now)
	}
}

// Stands reports whether time does not count.
func (g *Gate) Stands() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.stood.IsZero()
}

// Closed reports whether the gate is shut or barred.
func (g *Gate) Closed() bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.closedLocked()
}

// +checklocks:g.mu
func (g *Gate) closedLocked() bool { return g.shut || g.bar != "" }

// +checklocks:g.mu
func (g *Gate) closeLocked(now time.Time) {
	if g.stood.IsZero() {
		g.stood = now
	}
}

// +checklocks:g.mu
func (g *Gate) openLocked(now time.Time) {
	if g.closedLocked() {
		return
	}
	if g.opens != nil {
		close(g.opens)
		g.opens = nil
	}
	g.countLocked(now)
}

// countLocked has time count again, unless something keeps it from that.
//
// +checklocks:g.mu
func (g *Gate) countLocked(now time.Time) {
	if g.closedLocked() || g.still || g.stood.IsZero() {
		return
	}
	g.total += max(now.Sub(g.stood), 0) // who opens it may have looked at the clock before who has closed it
	g.stood = time.Time{}
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

// Paused returns the whole time until now that did not count.
func (g *Gate) Paused(now time.Time) time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.pausedLocked(now)
}

// +checklocks:g.mu
func (g *Gate) pausedLocked(now time.Time) time.Duration {
	if !g.stood.IsZero() {
		return g.total + now.Sub(g.stood)
	}
	return g.total
}

// Wait returns nil when the gate is open, at once if it is, or the cause of ctx's end.
func (g *Gate) Wait(ctx context.Context) error {
	for {
		g.mu.Lock()
		if !g.closedLocked() {
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
