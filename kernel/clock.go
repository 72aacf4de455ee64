package kernel

import (
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// startClock has the process ended when it has lived for its time limit: over all its runs, and without the time
// that it was paused or stopped.
func startClock(p *Process, k *KernelImpl) {
	if p.opts.Timeout <= 0 {
		return
	}
	left := p.opts.Timeout - p.Elapsed(time.Now())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.clock = time.AfterFunc(nextLook(p.opts.Timeout, left), func() {
		if checkClock(p) {
			k.saves.markAlive(p)
		}
	})
}

// nextLook is when a clock is looked at again of which so much is left: at its end, and often enough before that a
// crash takes at most a twentieth of the limit from what is known of it, or a minute.
func nextLook(limit, left time.Duration) time.Duration {
	return max(min(left, limit/20, time.Minute), 0)
}

// checkClock ends the process if its time is over, and otherwise comes again; it reports whether the process lives and its
// time passes. While it is paused, has to wait, or a person is asked something, its time stands still: whoever lets it go on checks again.
func checkClock(p *Process) (passes bool) {
	if p.opts.Timeout <= 0 {
		return false
	}
	left := p.opts.Timeout - p.Elapsed(time.Now())
	stands := p.gate.Stands()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.clock == nil:
	case left <= 0:
		p.cancel(timedOut{p.opts.Timeout})
	case !stands:
		p.clock.Reset(nextLook(p.opts.Timeout, left))
		return true
	}
	return false
}

// markAlive writes into the record that the process still lives, so that a crash does not begin its time limit anew.
func (s *saver) markAlive(p *Process) {
	if !s.keeps || p.State() >= types.StateZombie {
		return
	}
	err := p.rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerAlive, PID: p.PID}})
	if err == nil {
		err = p.rec.Commit()
	}
	if err != nil && p.State() < types.StateZombie { // else it has ended meanwhile, and its record is closed
		s.storageError(p, err)
	}
}

// stopClock ends the time limit.
func stopClock(p *Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.clock != nil {
		p.clock.Stop()
		p.clock = nil
	}
}
