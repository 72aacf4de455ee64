package kernel

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"rnix/types"
)

// Thread is a goroutine of a process. It shares the process's conversation, and its context ends with
// the process's. It is known to the process until it is joined, or the process is reaped.
type Thread struct {
	TID       types.TID
	ParentPID types.PID
	Intent    string
	CtxID     types.CtxID
	Done      chan struct{} // closed when the thread has ended

	p      *Process
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

// Join waits for the thread to end, has its process forget it and returns what it brought. It is CANCELLED
// when the process ends before the thread has.
func (t *Thread) Join() (string, error) {
	select {
	case <-t.Done:
	default:
		select {
		case <-t.Done:
		case <-t.p.ctx.Done(): // a thread that waits for itself must not keep the process from being reaped
			return "", &types.SyscallError{Syscall: "Join", PID: t.ParentPID, Code: types.ErrCancelled, Err: context.Cause(t.p.ctx)}
		}
	}
	t.forget()
	_, result, err := t.Outcome()
	return result, err
}

func (t *Thread) forget() {
	t.p.mu.Lock()
	defer t.p.mu.Unlock()
	delete(t.p.threads, t.TID)
}

var errEnded = errors.New("the process has ended")

// hasEnded refuses what a process is asked for that has ended.
func hasEnded(op string, p *Process) error {
	return &types.SyscallError{Syscall: op, PID: p.PID, Code: types.ErrCancelled, Err: errEnded}
}

// SpawnThread starts fn as a thread of the process. fn must return soon after its Context ends: the
// reaping of the process waits for it. A panic of fn becomes the thread's error.
func (p *Process) SpawnThread(intent string, fn func(*Thread)) (types.TID, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.state != types.StateRunning || p.cleared || p.ctx.Err() != nil { // one that is ended starts nothing any more
		return 0, hasEnded("SpawnThread", p)
	}
	p.lastTID++
	t := &Thread{p: p, TID: p.lastTID, ParentPID: p.PID, Intent: intent, CtxID: p.CtxID, Done: make(chan struct{}), state: types.StateRunning}
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
