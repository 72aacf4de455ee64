package ash

import (
	"context"
	"os"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// How long what runs may go on after an interrupt before it is ended without its doing.
const (
	breakPatience = time.Second
	lastPatience  = 2 * time.Second
)

// maxGoroutines bounds how much a script does at the same time. A pipeline takes one for each command.
const maxGoroutines = 5000

func after(d time.Duration) <-chan time.Time { return time.After(d) }

// foreground is what runs and is not a job, and what becomes of it when somebody interrupts it.
type foreground struct {
	mu sync.Mutex
	// +checklocks:mu
	programs map[int]*os.Process // by pid
	// +checklocks:mu
	subs map[chan os.Signal]bool // commands that handle signals themselves
	// +checklocks:mu
	broke chan struct{} // closed by an interrupt; nil = nobody has asked for it
	// +checklocks:mu
	by os.Signal // the signal that has come
	// +checklocks:mu
	cancel context.CancelCauseFunc // ends what runs, and the jobs that were started with it
}

// begin makes ready for a text, which cancel ends: an interrupt from now on is meant for it.
func (f *foreground) begin(cancel context.CancelCauseFunc) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.cancel = cancel
	if f.by == os.Interrupt {
		f.by, f.broke = nil, nil
	}
}

// end ends what runs, whatever it does.
func (f *foreground) end(cause error) {
	f.mu.Lock()
	cancel := f.cancel
	f.mu.Unlock()
	if cancel != nil {
		cancel(cause)
	}
}

// signal returns the signal that was to end what runs, nil if none has come.
func (f *foreground) signal() os.Signal {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.by
}

// broken returns the channel that is closed by an interrupt.
func (f *foreground) broken() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.broke == nil {
		f.broke = make(chan struct{})
		if f.by != nil {
			close(f.broke)
		}
	}
	return f.broke
}

func (f *foreground) interrupt(sig os.Signal, forward bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for sub := range f.subs {
		select {
		case sub <- sig:
		default: // it has more of them than it can count
		}
	}
	if forward {
		for _, p := range f.programs {
			_ = p.Signal(sig)
		}
	}
	// A program may do something else with an interrupt, as an editor does: then it was not meant for us.
	if sig != os.Interrupt || len(f.programs) == 0 {
		f.stopLocked(sig)
	}
}

// stop lets what runs end because of a signal.
func (f *foreground) stop(sig os.Signal) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.stopLocked(sig)
}

// +checklocks:f.mu
func (f *foreground) stopLocked(sig os.Signal) {
	if f.by != nil {
		return
	}
	f.by = sig
	if f.broke != nil {
		close(f.broke)
	}
	if f.cancel != nil {
		f.insist(f.cancel)
	}
}

// insist ends what does not end by itself: a loop that calls no command, a word that waits for a line.
func (f *foreground) insist(cancel context.CancelCauseFunc) {
	time.AfterFunc(breakPatience, func() {
		f.mu.Lock()
		busy := len(f.subs) > 0 || len(f.programs) > 0 && f.by == os.Interrupt
		code := signalCode(f.by)
		f.mu.Unlock()
		if busy {
			f.insist(cancel)
			return
		}
		cancel(&haltError{code: code})
	})
}

// program notes a program that runs, until the function that it returns is called.
func (f *foreground) program(p *os.Process) (done func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.programs == nil {
		f.programs = map[int]*os.Process{}
	}
	f.programs[p.Pid] = p
	return func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.programs, p.Pid)
	}
}

// subscribe returns a channel with the interrupts for a command, and what ends that.
func (f *foreground) subscribe() (<-chan os.Signal, func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.subs == nil {
		f.subs = map[chan os.Signal]bool{}
	}
	ch := make(chan os.Signal, 4)
	f.subs[ch] = true
	return ch, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.subs, ch)
	}
}

// onBreak calls do at an interrupt, unless the command takes the signals itself. It must be stopped.
func (f *foreground) onBreak(takes *atomic.Bool, do func()) (stop func()) {
	broken, returned := f.broken(), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ends when it is stopped
		select {
		case <-broken:
			if !takes.Load() {
				do()
			}
		case <-returned:
		}
	})
	return func() { close(returned); wg.Wait() }
}

// signalCode returns the exit status of what a signal has ended.
func signalCode(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitError
}
