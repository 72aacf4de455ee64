package records

import (
	"log/slog"
	"sync"

	"rnix/internal/recovery"
	"rnix/internal/store"
	"rnix/types"
)

// checkpoints writes the checkpoint.json files, in the background and one at a time. Of a history that
// is faster than the disk only the latest state is written. A failure costs nothing but time at a later
// resume, so it is counted and reported, and the process goes on.
type checkpoints struct {
	kept store.Derived
	log  *slog.Logger

	mu      sync.Mutex
	waiting map[types.UUID]pending // +checklocks:mu
	// +checklocks:mu
	busy    bool       // the goroutine runs
	idle    *sync.Cond // on mu; nothing is waiting and nothing runs
	written int        // +checklocks:mu
	failed  int        // +checklocks:mu
	// +checklocks:mu
	last string // the last failure
}

type pending struct {
	state *recovery.State
	done  func(bytes int)
}

func newCheckpoints(kept store.Derived, log *slog.Logger) *checkpoints {
	c := &checkpoints{kept: kept, log: log, waiting: map[types.UUID]pending{}}
	c.idle = sync.NewCond(&c.mu)
	return c
}

// put has the state of a history written. It does not block. done is called with the size when it was.
func (c *checkpoints) put(id types.UUID, s *recovery.State, done func(bytes int)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting[id] = pending{s, done}
	if !c.busy {
		c.busy = true
		go c.run() // ends when nothing is waiting; close waits for it
	}
}

func (c *checkpoints) run() {
	for {
		c.mu.Lock()
		var id types.UUID
		var p pending
		for id, p = range c.waiting {
			break
		}
		if p.state == nil {
			c.busy = false
			c.idle.Broadcast()
			c.mu.Unlock()
			return
		}
		delete(c.waiting, id)
		c.mu.Unlock()
		n, err := c.write(id, p.state)
		c.count(id, err)
		if err == nil {
			p.done(n)
		}
	}
}

func (c *checkpoints) write(id types.UUID, s *recovery.State) (bytes int, err error) {
	cp, err := s.Checkpoint(id)
	if err != nil {
		return 0, err
	}
	return c.kept.SaveCheckpoint(id, cp)
}

func (c *checkpoints) count(id types.UUID, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written++
	if err != nil && types.CodeOf(err) != types.ErrNotFound { // else it was removed meanwhile
		c.failed++
		c.last = err.Error()
		c.log.Warn("checkpoint.json", "uuid", id, "err", err)
	}
}

// failures returns how many could not be written since the daemon started, and why the last one.
func (c *checkpoints) failures() (int, string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.failed, c.last
}

// close waits until everything is written.
func (c *checkpoints) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for c.busy {
		c.idle.Wait()
	}
}
