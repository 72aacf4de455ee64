package kernel

import (
	"context"
	"fmt"
	"iter"

	"rnix/types"
)

// Coroutine is a function of a process that runs only while somebody resumes it, up to its next Yield.
type Coroutine struct {
	CoID      types.CoID
	ParentPID types.PID
	Intent    string

	ctx    context.Context
	cancel context.CancelFunc
	yield  func(any) bool // set before fn runs, used by fn only

	turn chan struct{} // full while the coroutine runs: who sends has the turn
	next func() (any, bool)
	stop func()
	err  error // of a panic; belongs to who has the turn
}

// Context ends when the coroutine must: what it waits for must not outlive its process.
func (c *Coroutine) Context() context.Context { return c.ctx }

// cleared unwinds a coroutine that is ended while it yields.
type clearedCoroutine struct{}

// Yield hands a value to whoever resumed the coroutine and suspends it until the next resume. When the
// process is reaped meanwhile, Yield does not return: deferred functions run and the coroutine ends.
func (c *Coroutine) Yield(value any) {
	if !c.yield(value) {
		panic(clearedCoroutine{})
	}
}

// SpawnCoroutine makes a coroutine. It begins to run at the first ResumeCoroutine.
func (p *Process) SpawnCoroutine(intent string, fn func(*Coroutine)) (types.CoID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != types.StateRunning || p.cleared || p.ctx.Err() != nil {
		return 0, hasEnded("SpawnCoroutine", p)
	}
	p.lastCoID++
	c := &Coroutine{CoID: p.lastCoID, ParentPID: p.PID, Intent: intent, turn: make(chan struct{}, 1)}
	c.ctx, c.cancel = context.WithCancel(p.ctx)
	c.next, c.stop = iter.Pull(func(yield func(any) bool) {
		c.yield = yield
		defer func() {
			switch r := recover(); r.(type) {
			case nil, clearedCoroutine:
			default:
				c.err = types.Errorf(types.ErrInternal, "Coroutine", "", "panic: %v", r)
			}
		}()
		fn(c)
	})
	if p.coroutines == nil {
		p.coroutines = map[types.CoID]*Coroutine{}
	}
	p.coroutines[c.CoID] = c
	return c.CoID, nil
}

// ResumeCoroutine runs a coroutine up to its next Yield and returns what it yielded. A coroutine that
// has ended, or never was, is NOT_FOUND. Calls for one coroutine at the same time take turns. When the
// process ends, it is CANCELLED.
func (p *Process) ResumeCoroutine(id types.CoID) (any, error) {
	p.mu.Lock()
	c, ok := p.coroutines[id]
	p.mu.Unlock()
	gone := &types.SyscallError{Syscall: "ResumeCoroutine", PID: p.PID, Code: types.ErrNotFound, Err: fmt.Errorf("coroutine %d has ended", id)}
	if !ok {
		return nil, gone
	}
	if !c.take(p.ctx) {
		return nil, &types.SyscallError{Syscall: "ResumeCoroutine", PID: p.PID, Code: types.ErrCancelled, Err: context.Cause(p.ctx)}
	}
	v, more, err := c.resume()
	if more {
		return v, nil
	}
	c.cancel()
	p.mu.Lock()
	delete(p.coroutines, id)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return nil, gone
}

// take waits for the turn. It reports false when the process has ended: nothing runs for it any more,
// and a coroutine that resumes itself waits no longer.
func (c *Coroutine) take(ctx context.Context) bool {
	if ctx.Err() != nil {
		return false
	}
	select {
	case c.turn <- struct{}{}:
		return true
	case <-ctx.Done():
		return false
	}
}

// resume runs the coroutine up to its next Yield and gives the turn back. It has the turn.
func (c *Coroutine) resume() (v any, more bool, err error) {
	defer func() { <-c.turn }() // also if fn ends its goroutine
	v, more = c.next()
	return v, more, c.err
}

// ClearCoroutines ends all coroutines, wherever they are suspended, and forgets them. One that runs at
// the moment ends at its next Yield, or when what it waits for ends with its Context.
func (p *Process) ClearCoroutines() {
	p.mu.Lock()
	cs := p.coroutines
	p.coroutines, p.cleared = nil, true
	p.mu.Unlock()
	for _, c := range cs {
		c.cancel()
	}
	for _, c := range cs {
		c.turn <- struct{}{}
		c.stop() // the turn is not given back: nobody resumes it any more
	}
}
