// Package debug renders what happens in a kernel for people: lines of strace, of a log and of steps.
//
// It owns the list of syscall names and the form of these lines. Its functions are pure; they know
// no process, no log and no terminal. Everything that comes from an agent passes through Sanitize.
package debug

import (
	"slices"
	"sync"
	"time"

	"rnix/internal/event"
	"rnix/types"
)

// MaxText is how many bytes of arguments or of a result an event keeps.
const MaxText = 2048

// The syscall names that come with the kernel.
var syscalls = []string{
	"Spawn", "Kill", "Wait", "Reap", "Resume", "Fork", "Pause", "Exit",
	"Open", "Read", "Write", "Close", "Stat", "Mount", "Unmount", "UnmountAll",
	"CtxAlloc", "CtxRead", "CtxWrite", "CtxFree", "BuildPrompt", "Compact",
	"ReasonStep", "Plan", "Replan", "Specialize", "Complete", "ToolCall",
	"Send", "Recv", "Pipe", "Signal", "SigBlock", "SigUnblock", "SignalTree",
	"JoinGroup", "LeaveGroup", "GetProcGroup", "SignalGroup",
	"SpawnSupervisor", "ThreadCreate", "ThreadJoin", "CoCreate", "CoResume", "CoYield",
	"Checkpoint", "Snapshot",
}

// names are the names of syscalls that are known.
type names struct {
	mu    sync.RWMutex
	known map[string]bool // +checklocks:mu
}

var registry = names{known: func() map[string]bool {
	m := make(map[string]bool, len(syscalls))
	for _, s := range syscalls {
		m[s] = true
	}
	return m
}()}

// Register adds the name of a new syscall. Registering a name twice does nothing.
func Register(name string) {
	registry.mu.Lock()
	defer registry.mu.Unlock()
	registry.known[name] = true
}

// Registered reports whether name is that of a syscall.
func Registered(name string) bool {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	return registry.known[name]
}

// Syscalls returns all registered names, sorted.
func Syscalls() []string {
	registry.mu.RLock()
	defer registry.mu.RUnlock()
	out := make([]string, 0, len(registry.known))
	for n := range registry.known {
		out = append(out, n)
	}
	slices.Sort(out)
	return out
}

// NewEvent makes the event of a syscall that has just ended. Arguments and result are cut to MaxText.
// A name that nobody has registered gets a question mark, so that it is noticed by who reads the
// trace and by the tests.
func NewEvent(pid types.PID, syscall, args, result string, err error, took time.Duration) types.SyscallEvent {
	if !Registered(syscall) {
		syscall += "?"
	}
	e := types.SyscallEvent{PID: pid, Syscall: syscall, Args: Cut(args, MaxText), Result: Cut(result, MaxText), Duration: took}
	if err != nil {
		e.Err = Cut(err.Error(), MaxText)
	}
	return e
}

// ToEvent returns e as an entry of the event log, for the history id. A zero time is filled in by the
// log; Seq always is.
func ToEvent(e types.SyscallEvent, id types.UUID, step int) event.Event {
	return event.Event{
		Kind: event.Syscall, Time: e.Time, PID: e.PID, UUID: id, Step: step,
		Name: e.Syscall, Args: e.Args, Result: e.Result, Err: e.Err, Dur: e.Duration,
	}
}

// SyscallEvent returns e as strace has it. ok is false if e is not of kind Syscall.
func SyscallEvent(e *event.Event) (s types.SyscallEvent, ok bool) {
	if e.Kind != event.Syscall {
		return s, false
	}
	args := e.Args
	if e.Path != "" {
		args = join(e.Path, args)
	}
	return types.SyscallEvent{
		Seq: e.Seq, Time: e.Time, PID: e.PID, Syscall: e.Name, Args: args, Result: e.Result, Err: e.Err, Duration: e.Dur,
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
