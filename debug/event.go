// Package debug renders what happens in a kernel for people: lines of strace, of a log and of steps.
//
// It owns the list of syscall names and the form of these lines. Its functions are pure; they know
// no process, no log and no terminal. Everything that comes from an agent passes through Sanitize.
package debug

import (
	"time"

	"rnix/internal/event"
	"rnix/types"
)

// MaxText is how many bytes of arguments or of a result an event keeps.
const MaxText = 2048

// NewEvent makes the event of a syscall that has just ended. Arguments and result are cut to MaxText.
// A name that is not registered gets a question mark, so that whoever reads the trace and the tests notice it.
func NewEvent(pid types.PID, syscall, args, result string, err error, took time.Duration) types.SyscallEvent {
	e := types.SyscallEvent{PID: pid, Syscall: marked(syscall), Args: Cut(args, MaxText), Result: Cut(result, MaxText), Duration: took}
	if err != nil {
		e.Err = Cut(err.Error(), MaxText)
	}
	return e
}

// NewBegin is NewEvent for a syscall that has just begun.
func NewBegin(pid types.PID, syscall, args string) types.SyscallEvent {
	return types.SyscallEvent{PID: pid, Syscall: marked(syscall), Args: Cut(args, MaxText), Begun: true}
}

func marked(syscall string) string {
	if !Registered(syscall) {
		return syscall + "?"
	}
	return syscall
}

// ToEvent returns e as an entry of the event log, for the history id. A zero time is filled in by the
// log; Seq always is.
func ToEvent(e types.SyscallEvent, id types.UUID, step int) (out event.Event) {
	Fill(&out, &e)
	out.UUID, out.Step = id, step
	return out
}

// Fill is ToEvent into an empty event of the caller's, whose stack has no room for copies.
func Fill(out *event.Event, e *types.SyscallEvent) {
	out.Kind = event.Syscall
	if e.Begun {
		out.Kind = event.SyscallBegun
	}
	out.Time, out.PID, out.Name, out.Args, out.Result, out.Err, out.Dur, out.Begin = e.Time, e.PID, e.Syscall, e.Args, e.Result, e.Err, e.Duration, e.Begin
}

// OfSyscall reports whether an event tells of a syscall: that it has begun, or how it has ended.
func OfSyscall(e *event.Event) bool { return e.Kind == event.Syscall || e.Kind == event.SyscallBegun }

// SyscallEvent returns e as strace has it. ok is false if e does not tell of a syscall.
func SyscallEvent(e *event.Event) (s types.SyscallEvent, ok bool) {
	if !OfSyscall(e) {
		return s, false
	}
	args := e.Args
	if e.Path != "" {
		args = join(e.Path, args)
	}
	return types.SyscallEvent{
		Seq: e.Seq, Time: e.Time, PID: e.PID, Syscall: e.Name, Args: args, Result: e.Result, Err: e.Err, Duration: e.Dur,
		Begun: e.Kind == event.SyscallBegun, Begin: e.Begin,
	}, true
}

// LogEntry returns e as the log has it. ok is false if e is not of kind LogLine.
func LogEntry(e *event.Event) (l types.LogEntry, ok bool) {
	if e.Kind != event.LogLine {
		return l, false
	}
	return types.LogEntry{Seq: e.Seq, Time: e.Time, PID: e.PID, Category: e.Name, Text: e.Text}, true
}

func join(a, b string) string {
	if b == "" {
		return a
	}
	return a + ", " + b
}
