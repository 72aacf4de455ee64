package ash

import (
	"context"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"

	"rnix/types"
)

// How long what runs may go on after an interrupt before it is ended without its doing.
const (
	breakPatience = time.Second
	lastPatience  = 2 * time.Second
)

// maxGoroutines bounds how much a script does at the same time. A pipeline takes one for each command.
const maxGoroutines = 10_000

func after(d time.Duration) <-chan time.Time { return time.After(d) }

// begin makes ready for a text: an interrupt from now on is meant for it.
func (s *Shell) begin(cancel context.CancelCauseFunc) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.cancel = cancel
	if s.by == os.Interrupt {
		s.by, s.broke = nil, make(chan struct{})
	}
}

// settle waits, at the end of a text, until each agent that is being started in the background is there.
func (s *Shell) settle(ctx context.Context) {
	for _, j := range s.jobs.all() {
		answered := s.jobs.settled(j)
		if answered == nil {
			continue
		}
		select {
		case <-answered:
		case <-after(startPatience):
		case <-ctx.Done():
		}
	}
}

// Interrupt tells what runs in the foreground that somebody wants it to end. SIGINT ends the text that
// runs: an agent is asked to stop, and a second one leaves it. SIGTERM and SIGHUP end the shell. forward
// says that the programs in the foreground have not got the signal yet, as they have from a terminal.
func (s *Shell) Interrupt(sig os.Signal, forward bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range s.subs {
		select {
		case sub <- sig:
		default: // it has more of them than it can count
		}
	}
	if forward {
		for _, p := range s.front {
			_ = p.Signal(sig)
		}
	}
	// A program may do something else with an interrupt, as an editor does: then it was not meant for us.
	if sig != os.Interrupt || len(s.front) == 0 {
		s.breakLocked(sig)
	}
}

func (s *Shell) breakLocked(sig os.Signal) {
	if s.by != nil {
		return
	}
	s.by = sig
	close(s.broke)
	s.insist(s.cancel)
}

// insist ends what does not end by itself: a loop that calls no command.
func (s *Shell) insist(cancel context.CancelCauseFunc) {
	if cancel == nil {
		return
	}
	time.AfterFunc(breakPatience, func() {
		s.mu.Lock()
		busy := len(s.subs) > 0 || len(s.front) > 0 && s.by == os.Interrupt
		code := signalCode(s.by)
		s.mu.Unlock()
		if busy {
			s.insist(cancel)
			return
		}
		cancel(&haltError{code: code})
	})
}

func (s *Shell) wasInterrupted() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.by == os.Interrupt
}

// broken returns the channel that is closed by an interrupt. What runs in the background has none.
func (s *Shell) broken(hc *interp.HandlerContext) <-chan struct{} {
	if jobOf(hc) != 0 {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.broke
}

// onBreak calls f at an interrupt, unless the command takes the signals itself. It must be stopped.
func (s *Shell) onBreak(hc *interp.HandlerContext, takes *atomic.Bool, f func()) (stop func()) {
	broken, returned := s.broken(hc), make(chan struct{})
	var wg sync.WaitGroup
	wg.Go(func() { // ends when it is stopped
		select {
		case <-broken:
			if !takes.Load() {
				f()
			}
		case <-returned:
		}
	})
	return func() { close(returned); wg.Wait() }
}

// subscribe returns a channel with the interrupts for a command, and what ends that.
func (s *Shell) subscribe() (<-chan os.Signal, func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	ch := make(chan os.Signal, 4)
	s.subs[ch] = nil
	return ch, func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		delete(s.subs, ch)
	}
}

// halted returns why a command is not to be run any more; nil if it is.
func (s *Shell) halted(hc *interp.HandlerContext) error {
	if n := runtime.NumGoroutine(); n > maxGoroutines {
		at := s.where(hc)
		if at != "" {
			at += ": "
		}
		err := types.Errorf(types.ErrExhausted, "", "", "%sthe script does more than %d things at the same time and was ended; does a function start itself?", at, maxGoroutines)
		s.mu.Lock()
		cancel := s.cancel
		s.mu.Unlock()
		cancel(&haltError{exitError, err})
		return &haltError{exitError, err}
	}
	if id := jobOf(hc); id != 0 {
		if j := s.jobs.get(id); j != nil && s.jobs.isKilled(j) {
			return &haltError{code: signalCode(syscall.SIGTERM)}
		}
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.by != nil {
		return &haltError{code: signalCode(s.by)}
	}
	return nil
}

// signalCode returns the exit status of what a signal has ended.
func signalCode(sig os.Signal) int {
	if n, ok := sig.(syscall.Signal); ok {
		return 128 + int(n)
	}
	return exitError
}
