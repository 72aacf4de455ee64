package service

import (
	"errors"

	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// Target is a process that somebody named, wherever it lies.
type Target struct {
	UUID types.UUID
	PID  types.PID      // of its last run
	Live *kernel.Info   // what the kernel has of it, also what it remembers of one that does not run any more; nil = nothing
	Info *step.ProcInfo // nil if there is nothing on disk
}

// Place is where a process lies.
type Place int

// Where a process can lie.
const (
	Runs   Place = iota // in the kernel: at work, waiting, or paused there
	Stored              // on disk without an end: suspended, or cut off with a daemon
	Over                // it has ended
)

// Place returns where a process lies now. One that the kernel only remembers, and that is suspended on disk, lies there.
func (t *Target) Place() Place {
	switch {
	case t.Live != nil && t.Live.State < types.StateZombie:
		return Runs
	case t.Info != nil && (t.Info.Suspended || t.Info.Exit == nil && t.Live == nil || t.Live != nil && t.Live.State == types.StateZombie && t.Live.Suspended):
		return Stored
	}
	return Over
}

// Kind returns of what kind a process is; "" = an agent.
func (t *Target) Kind() string {
	if t.Live != nil {
		return t.Live.Kind
	}
	return t.Info.Kind
}

// MustRun refuses what does not run: the error has code NOT_FOUND, and says what has become of it. op is the call and text the name that was given.
func (t *Target) MustRun(op, text string) error {
	what := "has ended"
	switch t.Place() {
	case Runs:
		return nil
	case Stored:
		what = "is suspended on disk; resume it with: rnix resume " + t.UUID.String()
	}
	return &types.SyscallError{Syscall: op, PID: t.PID, Device: text, Code: types.ErrNotFound, Err: errors.New("the process " + what)}
}

// Paused reports whether a person has paused a process, in memory or on disk.
func (t *Target) Paused() bool {
	switch t.Place() {
	case Runs:
		return t.Live.Paused
	case Stored:
		return t.Info.Why() == types.SuspendPaused
	}
	return false
}

// MaxAncestors bounds a chain of parents; a longer one is a circle in damaged files.
const MaxAncestors = 64

// MinPrefix is the least number of characters of a UUID that name a process. Version 7 UUIDs of one day share their
// first characters, so shorter ones would rarely be unique anyway.
const MinPrefix = 4

// MaxCandidates bounds the list in an error that says what a name may mean.
const MaxCandidates = 10
