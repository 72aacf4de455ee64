package proc

import (
	"sync"
	"time"
)

// hold stops the clock of a child that goes on running, until goOn is called, as for what waits in it for a person. Several may hold it.
func hold(c *Child) (goOn func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.holds++; c.holds == 1 && !c.frozen {
		stopClockLocked(c)
	}
	return sync.OnceFunc(func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.holds--; c.holds == 0 && !c.frozen {
			c.running = time.Now()
			if c.cause == Exited {
				c.startTimeoutLocked()
			}
		}
	})
}

// stopClockLocked stops the clock of a child that runs.
//
// +checklocks:c.mu
func stopClockLocked(c *Child) {
	if c.exited {
		return
	}
	if c.timeout != nil {
		c.timeout.Stop()
	}
	ran := time.Since(c.running)
	c.ran += ran
	c.left = max(c.left-ran, time.Millisecond)
}
