package supervisor

import (
	"errors"
	"sync"

	"rnix/kernel"
	"rnix/types"
)

// inbox is where others leave word for a supervisor. Its lock is a leaf, and nothing waits.
type inbox struct {
	wake chan struct{} // room for one: there is word

	mu sync.Mutex
	// The signal to end with; 0 = it was not asked to end.
	asked types.Signal // +checklocks:mu
	// Children that have become visible.
	joins []*kernel.Process // +checklocks:mu
	// Children that have ended.
	exits []*kernel.Process // +checklocks:mu
	// Children to be started.
	adds []*addition // +checklocks:mu
	// No more children.
	closed bool // +checklocks:mu
}

// addition is a child that somebody wants to be started. done is closed when pid or err is there.
type addition struct {
	intent string
	done   chan struct{}
	pid    types.PID
	err    error
}

// refuse says that a supervisor is ending.
func (a *addition) refuse(supervisor types.PID) {
	a.err = &types.SyscallError{Syscall: "StartChild", PID: supervisor, Code: types.ErrCancelled, Err: errors.New("the supervisor is ending")}
	close(a.done)
}

func (in *inbox) poke() {
	select {
	case in.wake <- struct{}{}:
	default:
	}
}

// ask leaves word that the supervisor is to end. The first one counts.
func (in *inbox) ask(sig types.Signal) {
	in.mu.Lock()
	if in.asked == 0 {
		in.asked = sig
	}
	in.mu.Unlock()
	in.poke()
}

// end returns the signal that asked the supervisor to end; 0 = none.
func (in *inbox) end() types.Signal {
	in.mu.Lock()
	defer in.mu.Unlock()
	return in.asked
}

// join leaves word that there is a child.
func (in *inbox) join(child *kernel.Process) {
	in.mu.Lock()
	in.joins = append(in.joins, child)
	in.mu.Unlock()
	in.poke()
}

// exit leaves word that a child has ended.
func (in *inbox) exit(child *kernel.Process) {
	in.mu.Lock()
	in.exits = append(in.exits, child)
	in.mu.Unlock()
	in.poke()
}

// add leaves word of a child to be started. It reports false if none is taken any more.
func (in *inbox) add(a *addition) bool {
	in.mu.Lock()
	ok := !in.closed
	if ok {
		in.adds = append(in.adds, a)
	}
	in.mu.Unlock()
	in.poke()
	return ok
}

// take returns what has come since the last time.
func (in *inbox) take() (joins, exits []*kernel.Process, adds []*addition) {
	in.mu.Lock()
	defer in.mu.Unlock()
	joins, exits, adds = in.joins, in.exits, in.adds
	in.joins, in.exits, in.adds = nil, nil, nil
	return joins, exits, adds
}

// close takes no more children, and returns those that are still to be started.
func (in *inbox) close() []*addition {
	in.mu.Lock()
	defer in.mu.Unlock()
	in.closed = true
	adds := in.adds
	in.adds = nil
	return adds
}
