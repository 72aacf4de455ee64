package proc

import (
	"context"
	"os"
	"sync"
	"syscall"
	"time"

	"rnix/internal/sandbox"
)

// lingering is how long descendants and pipes may outlast their child: enough for a process that is
// just printing its last words, not enough to be noticed.
const lingering = 250 * time.Millisecond

// Child is a process that this program has started. Safe for concurrent use.
type Child struct {
	manager *Manager
	spec    Spec
	command string // as people see it
	exec    program
	box     *sandbox.Box // nil = it is not confined
	plan    sandbox.Plan
	free    func() // see Box; may be nil
	inner   []Inner
	clock   func(hold func() (goOn func())) // of its box; may be nil
	refused func() []sandbox.Refusal        // of its box; may be nil
	serving sync.WaitGroup                  // what is served inside of its box
	opening opening
	ended   func(ExitInfo, string) // of its box; nil = nobody is told
	said    *Ring                  // for that
	entry   entry
	process *os.Process
	started time.Time
	adopts  bool // it is a subreaper: see adopts
	tree    *tree
	cradle  cgroup // in which it was born; "" = none
	before  Hits   // of its agent, when it was started
	pipes   pipes
	channel channel
	done    chan struct{} // closed when exit is set and nothing of the child is left
	exit    ExitInfo      // written before done is closed, read after

	acts sync.WaitGroup // what timers and callers are doing to it
	ice  ice

	mu    sync.Mutex
	cause Cause // +checklocks:mu
	// +checklocks:mu
	exited bool // it is a zombie, or was waited for
	// +checklocks:mu
	reaped bool // its pid may belong to another
	// +checklocks:mu
	finished bool // no new acts
	// +checklocks:mu
	until   time.Time   // end of the grace; zero = no SIGTERM was sent
	grace   *time.Timer // +checklocks:mu
	timeout *time.Timer // +checklocks:mu
	// +checklocks:mu
	left time.Duration // of the timeout, when the clock was last set going
	// +checklocks:mu
	running time.Time // when the clock was last set going
	// +checklocks:mu
	ran    time.Duration // before that
	frozen bool          // +checklocks:mu
	holds  int           // +checklocks:mu
	// +checklocks:mu
	unfollow func() bool // lets go of the context
}

// PID returns the child's process id in the operating system.
func (c *Child) PID() int { return c.process.Pid }

// StartTime says, with PID, which process of that number it is: when it began, as the system counts; 0 = not known.
func (c *Child) StartTime() uint64 { return c.entry.Leader.Start }

// Done returns a channel that is closed when the child has ended and nothing of it is left.
func (c *Child) Done() <-chan struct{} { return c.done }

// Wait waits for the end of the child, of its descendants and of its output, and returns how it
// ended. Any number of callers may wait.
func (c *Child) Wait() ExitInfo {
	<-c.done
	return c.exit
}

// Info describes the child.
func (c *Child) Info() Info {
	c.mu.Lock()
	defer c.mu.Unlock()
	return Info{
		PID: c.process.Pid, Kind: c.spec.Kind, Owner: c.spec.Owner, OwnerUUID: c.spec.OwnerUUID,
		Command: c.command, StartedAt: c.started, Frozen: c.frozen,
	}
}

// Signal sends sig to the child's process group. It does nothing once the child has ended.
func (c *Child) Signal(sig syscall.Signal) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.reaped {
		_ = syscall.Kill(-c.process.Pid, sig) // the group may be gone: that is no news
	}
}

// Kill ends the child and all its descendants at once, and waits for them.
func (c *Child) Kill() ExitInfo { return c.Stop(0) }

// Stop ends the child: SIGTERM to its group, and after grace SIGKILL to every process that is left
// of it. It waits for the end. A grace of 0 kills at once.
func (c *Child) Stop(grace time.Duration) ExitInfo {
	c.end(Stopped, grace)
	return c.Wait()
}

// end begins to end the child; the first cause counts, and the shortest grace.
func (c *Child) end(cause Cause, grace time.Duration) {
	if !c.enter() {
		return
	}
	defer c.acts.Done()
	c.mu.Lock()
	if c.cause == Exited && !c.exited {
		c.cause = cause
	}
	until := time.Now().Add(grace)
	gentle := grace > 0 && !c.exited
	if gentle && (c.until.IsZero() || until.Before(c.until)) {
		c.until = until
		if c.grace != nil {
			c.grace.Stop()
		}
		c.grace = time.AfterFunc(grace, func() { c.end(cause, 0) })
	}
	c.mu.Unlock()
	if !gentle {
		c.tree.kill()
		c.Signal(syscall.SIGKILL) // where there is no /proc, this is all
		c.loosen()
		return
	}
	c.tree.find() // remember who descends from it while that can still be seen
	c.terminate(syscall.SIGTERM)
	c.thaw() // what is stopped cannot obey
	c.Signal(syscall.SIGCONT)
}

// enter admits one act on the child, until it has finished. The caller calls acts.Done.
func (c *Child) enter() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.finished {
		return false
	}
	c.acts.Add(1)
	return true
}

// arm starts the child's clock.
func (c *Child) arm() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left, c.running = c.spec.Timeout, c.started
	c.startTimeoutLocked()
}

// +checklocks:c.mu
func (c *Child) startTimeoutLocked() {
	if c.spec.Timeout > 0 && !c.exited {
		c.timeout = time.AfterFunc(c.left, func() { c.end(TimedOut, c.spec.Grace) })
	}
}

// follow ends the child when ctx ends.
func (c *Child) follow(ctx context.Context) {
	stop := context.AfterFunc(ctx, func() { c.end(Cancelled, c.spec.Grace) })
	c.mu.Lock()
	c.unfollow = stop
	finished := c.finished
	c.mu.Unlock()
	if finished {
		stop()
	}
}

// freeze stops the child's processes and its clock, and returns how many processes it stopped. When it
// crosses with thaw, what came last counts.
func (c *Child) freeze() int {
	if !c.enter() {
		return 0
	}
	defer c.acts.Done()
	c.ice.mu.Lock()
	defer c.ice.mu.Unlock()
	c.mu.Lock()
	if c.frozen || c.exited || c.cause != Exited {
		c.mu.Unlock()
		return 0
	}
	c.frozen = true
	if c.holds == 0 {
		stopClockLocked(c)
	}
	c.mu.Unlock()
	return c.freezeLocked()
}

// thaw lets a frozen child go on.
func (c *Child) thaw() {
	if !c.enter() {
		return
	}
	defer c.acts.Done()
	c.ice.mu.Lock()
	defer c.ice.mu.Unlock()
	c.mu.Lock()
	if !c.frozen {
		c.mu.Unlock()
		return
	}
	c.frozen = false
	if c.holds == 0 {
		c.running = time.Now()
		if c.cause == Exited {
			c.startTimeoutLocked()
		}
	}
	c.mu.Unlock()
	c.thawLocked()
}

// watch waits for the child, ends what it has left behind, and announces its end.
func (c *Child) watch() {
	defer c.manager.work.Done()
	left := 0
	state, err := reap(c.process, func() {
		left = c.clear()
		c.mu.Lock()
		c.reaped = true
		c.mu.Unlock()
	})
	c.channel.close()
	c.manager.registry.forget(c.entry, c.manager.log)
	c.manager.mu.Lock()
	delete(c.manager.children, c.process.Pid)
	c.manager.mu.Unlock()

	c.mu.Lock()
	c.finished = true
	unfollow := c.unfollow
	c.mu.Unlock()
	if unfollow != nil {
		unfollow()
	}
	c.acts.Wait()
	<-c.opening.done
	refused := closeInner(c)
	changed, hits := c.closeBox(), report(c)
	c.mu.Lock()
	c.exit = ExitInfo{Cause: c.cause, Left: left, Took: c.ran, Err: err, Code: -1, Changed: changed, Hits: hits, Refused: refused}
	c.mu.Unlock()
	if state != nil {
		c.exit.describe(state)
	}
	c.tell()
	close(c.done)
}

// clear is called when the child has exited, while its pid is still its own. It waits a moment for
// descendants and output, kills what is left of the one, and cuts off the other. It returns how many
// processes it had to kill.
func (c *Child) clear() int {
	c.mu.Lock()
	c.exited = true
	for _, t := range []*time.Timer{c.timeout, c.grace} {
		if t != nil {
			t.Stop()
		}
	}
	if !c.frozen && c.holds == 0 {
		c.ran += time.Since(c.running)
	}
	until := time.Now().Add(lingering)
	gentle := c.until.After(until)
	if gentle {
		until = c.until
	}
	c.mu.Unlock()
	killed := 0
	if rest := c.tree.find(); len(rest) > 0 {
		if gentle { // who was outside the group has not heard yet
			for _, id := range rest {
				if s, ok := statOf(id.PID); ok && s.group != c.process.Pid {
					signal(id, syscall.SIGTERM)
				}
			}
		}
		awaitGone(rest, until)
		rest = c.tree.kill()
		c.loosen()
		awaitGone(rest, time.Now().Add(time.Second))
		killed = len(rest)
	}
	c.melt()
	c.pipes.finish()
	return killed
}

// describe fills in what the operating system says of the end.
func (e *ExitInfo) describe(state *os.ProcessState) {
	e.Code, e.User, e.System = state.ExitCode(), state.UserTime(), state.SystemTime()
	if status, ok := state.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		e.Signal = status.Signal()
		e.Code = 128 + int(e.Signal)
	}
	if usage, ok := state.SysUsage().(*syscall.Rusage); ok {
		e.MaxRSS = usage.Maxrss * rssUnit
	}
}
