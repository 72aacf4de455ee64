package control

import (
	"context"
	"sync"
	"time"
)

// Idle knows since when nothing has been asked of the daemon.
type Idle struct {
	mu sync.Mutex
	// +checklocks:mu
	calls int // under way, streams included
	// +checklocks:mu
	since time.Time // when the last one ended
}

// NewIdle makes one that begins now.
func NewIdle(now time.Time) *Idle { return &Idle{since: now} }

// Begin notes that a call begins.
func (i *Idle) Begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls++
}

// End notes that a call has ended.
func (i *Idle) End(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls--
	i.since = now
}

// Note says that there was work until now that was not a call.
func (i *Idle) Note(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.since = now
}

// For returns for how long there has been no call.
func (i *Idle) For(now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.calls > 0 {
		return 0
	}
	return now.Sub(i.since)
}

// Wait returns when there was no call for so long, and busy, which is asked now and then, has said no meanwhile. It reports false if ctx ends first.
func (i *Idle) Wait(ctx context.Context, limit time.Duration, busy func() bool) bool {
	tick := time.NewTicker(max(limit/10, 100*time.Millisecond))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return false
		case <-tick.C:
		}
		now := time.Now()
		if busy() {
			i.Note(now)
		}
		if i.For(now) >= limit {
			return true
		}
	}
}
