package kernel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"rnix/types"
)

// Thread is a goroutine of a process. It shares the process's conversation, and its context ends with
// the process's.
type Thread struct {
	TID       types.TID
	ParentPID types.PID
	Intent    string
	CtxID     types.CtxID
	Done      chan struct{} // closed when the thread has ended

	ctx    context.Context
	cancel context.CancelFunc

	mu     sync.Mutex
	state  types.ProcessState // +checklocks:mu
	result string             // +checklocks:mu
	err    error              // +checklocks:mu
}

// Context ends when the thread must stop.
func (t *Thread) Context() context.Context { return t.ctx }

// Finish sets what the thread brought. The last call counts.
func (t *Thread) Finish(result string, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.result, t.err = result, err
}

// Outcome returns state, result and error of the moment.
func (t *Thread) Outcome() (types.ProcessState, string, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.state, t.result, t.err
}

var errEnded = errors.New("the process has ended")

// SpawnThread starts fn as a thread of the process. fn must return soon after its Context ends: the
// reaping of the process waits for it. A panic of fn becomes the thread's error.
func (p *Process) SpawnThread(intent string, fn func(*Thread)) (types.TID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != types.StateRunning || p.cleared {
		return 0, &types.SyscallError{Syscall: "SpawnThread", PID: p.PID, Code: types.ErrCancelled, Err: errEnded}
	}
	p.lastTID++
	t := &Thread{TID: p.lastTID, ParentPID: p.PID, Intent: intent, CtxID: p.CtxID, Done: make(chan struct{}), state: types.StateRunning}
	t.ctx, t.cancel = context.WithCancel(p.ctx)
	if p.threads == nil {
		p.threads = map[types.TID]*Thread{}
	}
	p.threads[t.TID] = t
	go t.run(fn) // ends with fn; ClearThreads waits for it
	return t.TID, nil
}

func (t *Thread) run(fn func(*Thread)) {
	defer close(t.Done)
	defer t.cancel()
	defer func() {
		if r := recover(); r != nil {
			t.Finish("", types.Errorf(types.ErrInternal, "Thread", "", "panic: %v", r))
		}
		t.mu.Lock()
		t.state = types.StateDead
		t.mu.Unlock()
	}()
	fn(t)
}

// Thread returns a thread of the process.
func (p *Process) Thread(id types.TID) (*Thread, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if t, ok := p.threads[id]; ok {
		return t, nil
	}
	return nil, &types.SyscallError{Syscall: "Thread", PID: p.PID, Code: types.ErrNotFound, Err: fmt.Errorf("no thread %d", id)}
}

// ClearThreads cancels all threads, waits for them and forgets them. No thread can be started
// afterwards.
func (p *Process) ClearThreads() {
	p.mu.Lock()
	threads := p.threads
	p.threads, p.cleared = nil, true
	p.mu.Unlock()
	for _, t := range threads {
		t.cancel()
	}
	for _, t := range threads {
		<-t.Done
	}
}
