package kernel

import "time"

// startClock has the process ended when it has lived for its time limit, pauses left out.
func startClock(p *Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.opts.Timeout > 0 {
		p.clock = time.AfterFunc(p.opts.Timeout, func() { checkClock(p) })
	}
}

// checkClock ends the process if its time is over, and otherwise comes again when it will be. While the
// process is paused, or has to wait, its time stands still: whoever lets it go on checks again.
func checkClock(p *Process) {
	if p.opts.Timeout <= 0 {
		return
	}
	left := p.opts.Timeout - p.Elapsed(time.Now())
	closed := p.gate.Closed()
	p.mu.Lock()
	defer p.mu.Unlock()
	switch {
	case p.clock == nil:
	case left <= 0:
		p.cancel(timedOut{p.opts.Timeout})
	case !closed:
		p.clock.Reset(left)
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
