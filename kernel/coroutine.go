package kernel

import (
	"fmt"
	"iter"
	"sync"

	"rnix/types"
)

// Coroutine is a function of a process that runs only while somebody resumes it, up to its next Yield.
type Coroutine struct {
	CoID      types.CoID
	ParentPID types.PID
	Intent    string

	yield func(any) bool // set before fn runs, used by fn only

	mu   sync.Mutex // held while the coroutine runs
	next func() (any, bool)
	stop func()
	err  error // +checklocks:mu; of a panic
}

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
	if p.state != types.StateRunning || p.cleared {
		return 0, &types.SyscallError{Syscall: "SpawnCoroutine", PID: p.PID, Code: types.ErrCancelled, Err: errEnded}
	}
	p.lastCoID++
	c := &Coroutine{CoID: p.lastCoID, ParentPID: p.PID, Intent: intent}
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
// has ended, or never was, is NOT_FOUND. Calls for one coroutine at the same time take turns.
func (p *Process) ResumeCoroutine(id types.CoID) (any, error) {
	p.mu.Lock()
	c, ok := p.coroutines[id]
	p.mu.Unlock()
	gone := &types.SyscallError{Syscall: "ResumeCoroutine", PID: p.PID, Code: types.ErrNotFound, Err: fmt.Errorf("coroutine %d has ended", id)}
	if !ok {
		return nil, gone
	}
	c.mu.Lock()
	v, more := c.next()
	err := c.err
	c.mu.Unlock()
	if more {
		return v, nil
	}
	p.mu.Lock()
	delete(p.coroutines, id)
	p.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return nil, gone
}

// ClearCoroutines ends all coroutines, wherever they are suspended, and forgets them. One that runs at
// the moment ends at its next Yield.
func (p *Process) ClearCoroutines() {
	p.mu.Lock()
	cs := p.coroutines
	p.coroutines, p.cleared = nil, true
	p.mu.Unlock()
	for _, c := range cs {
		c.mu.Lock()
		c.stop()
		c.mu.Unlock()
	}
}
