package web

import (
	"context"
	"sync"
	"time"
)

// limit ends a context after so much time in which nothing holds it. Safe for concurrent use.
type limit struct {
	ctx context.Context
	end context.CancelFunc

	mu    sync.Mutex
	left  time.Duration // +checklocks:mu
	since time.Time     // +checklocks:mu
	holds int           // +checklocks:mu
	timer *time.Timer   // +checklocks:mu
}

// newLimit returns a limit that runs. The caller must stop it.
func newLimit(ctx context.Context, d time.Duration) *limit {
	l := &limit{left: d, since: time.Now()}
	l.ctx, l.end = context.WithCancel(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	l.timer = time.AfterFunc(d, l.end)
	return l
}

// hold stops the time until goOn is called. Several may hold it.
func (l *limit) hold() (goOn func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.holds++; l.holds == 1 {
		l.timer.Stop()
		l.left = max(l.left-time.Since(l.since), time.Millisecond)
	}
	return sync.OnceFunc(func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		if l.holds--; l.holds == 0 {
			l.since = time.Now()
			l.timer.Reset(l.left)
		}
	})
}

// stop ends the context, and the time.
func (l *limit) stop() {
	l.mu.Lock()
	l.timer.Stop()
	l.mu.Unlock()
	l.end()
}
