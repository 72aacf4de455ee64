package daemon

import (
	"context"
	"sync"
	"time"

	"rnix/internal/service"
	"rnix/ipc"
)

// idler knows since when nothing has been asked of the daemon.
type idler struct {
	mu sync.Mutex
	// +checklocks:mu
	calls int // under way, streams included
	// +checklocks:mu
	since time.Time // when the last one ended
}

func newIdler(now time.Time) *idler { return &idler{since: now} }

func (i *idler) begin() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls++
}

func (i *idler) end(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.calls--
	i.since = now
}

// note says that there was work until now that was not a call.
func (i *idler) note(now time.Time) {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.since = now
}

// idleFor returns for how long there has been no call.
func (i *idler) idleFor(now time.Time) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.calls > 0 {
		return 0
	}
	return now.Sub(i.since)
}

// wire returns where services register what they answer: each call counts as work, and its error is told in the words of whoever called.
func wire(d *Daemon, s *ipc.Server) *service.Wire {
	return &service.Wire{Server: s, Around: func(req any, call func() error) error {
		d.idle.begin()
		defer func() { d.idle.end(time.Now()) }()
		return inTheirWords(d, req, onReadOnly(d, call()))
	}}
}

// stopWhenIdle stops the daemon when it has had nothing to do for long enough: no processes, paused
// ones and those that are to be woken included, and no calls.
func (d *Daemon) stopWhenIdle(ctx context.Context) {
	every := max(d.opt.Idle/10, 100*time.Millisecond)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
		now := time.Now()
		if len(d.kernel.Processes()) > 0 || d.auto.Max > 0 && d.journal.Index().Sleeps() {
			d.idle.note(now)
		}
		if d.idle.idleFor(now) >= d.opt.Idle {
			d.log.Info("idle", "for", d.opt.Idle)
			d.stopper.is("RNIX_IDLE")
			d.stop()
			return
		}
	}
}
