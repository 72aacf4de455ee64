package debug

import (
	"maps"
	"slices"
	"sync"
)

// syscalls are the syscalls that come with the kernel, each with the classes under which a Filter finds it. Those
// without classes are calls on a path, and have the classes of its device.
var syscalls = map[string][]string{
	"Open": nil, "Read": nil, "Write": nil, "Close": nil,
	"Spawn": {"process"}, "Resume": {"process"}, "Fork": {"process"}, "SpawnSupervisor": {"process"}, "Wait": {"process", "wait"}, "Ps": {"process"},
	"ThreadCreate": {"process"}, "ThreadJoin": {"process"},
	"JoinGroup": {"process"}, "LeaveGroup": {"process"}, "GetProcGroup": {"process"},
	"Signal": {"signal"}, "SignalTree": {"signal"}, "SignalGroup": {"signal"},
	"Send": {"message"}, "Recv": {"message"}, "Ask": {"message"},
	"Mount": {"mcp"}, "Unmount": {"mcp"},
	"BuildPrompt": {"step"}, "Plan": {"step"}, "Replan": {"step"}, "Specialize": {"step"}, "Complete": {"step"},
}

// untraced are names that one may look for and that are no syscalls of the trace, with the reason.
var untraced = map[string]string{
	"Kill":       "it is Signal",
	"Exit":       "the event exited says it",
	"Reap":       "the event reaped says it",
	"Pause":      "it is Signal with SIGPAUSE, and the event paused",
	"Compact":    "the event compacted says it",
	"Snapshot":   "the event snapshot says it",
	"ReasonStep": "the events step_started and step_ended say it",
	"ToolCall":   "it is the Open, Write, Read and Close of its device, and a line of the log",
	"CtxAlloc":   "the context is made with the process",
	"CtxFree":    "the context is freed when the trace of its process is closed already",
	"CtxRead":    "no process calls it",
	"CtxWrite":   "no process calls it",
	"Stat":       "no process calls it",
	"Checkpoint": "no process calls it",
	"UnmountAll": "the kernel does it when it stops, and no trace is read any more",
	"Pipe":       "only a program that embeds the kernel can call it",
	"SigBlock":   "only a program that embeds the kernel can call it",
	"SigUnblock": "only a program that embeds the kernel can call it",
	"CoCreate":   "only a program that embeds the kernel can call it",
	"CoResume":   "only a program that embeds the kernel can call it",
	"CoYield":    "only a program that embeds the kernel can call it",
}

// names are the names of syscalls that are known.
type names struct {
	mu    sync.RWMutex
	known map[string]bool // +checklocks:mu
}

var registry = names{known: func() map[string]bool {
	m := make(map[string]bool, len(syscalls))
	for s := range syscalls {
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
	return slices.Sorted(maps.Keys(registry.known))
}

// Untraced returns why a name is not that of a syscall although one may expect it; "" if there is nothing to say.
func Untraced(name string) string { return untraced[name] }

// slowDevices are those whose Write can take long: what it asks for is done elsewhere.
var slowDevices = []string{"/dev/llm", "/dev/shell", "/mnt/mcp"}

// Long reports whether a call on a path is one whose begin is worth an event of its own: it may take minutes, and
// whoever looks meanwhile is to see it. Other calls are told of when they have ended.
func Long(syscall, path string) bool {
	return syscall == "Write" && slices.ContainsFunc(slowDevices, func(d string) bool { return below(path, d) })
}
