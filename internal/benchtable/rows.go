package main

// row is one line of the page: a measurement of ours, the baseline beside it, and what is asked of them.
type row struct {
	no      string // as in the list of targets
	measure string
	pkg     string // where the benchmarks are, relative to go.mod
	ours    string // the benchmark's full name
	base    string // the baseline's; empty: none
	unit    string // which of the benchmark's figures; empty: ns/op
	// absolute says that target and gate are bounds of ours in the unit, and not of the ratio to base.
	absolute     bool
	target, gate float64 // gate 0: none; both 0: a figure without a target
	alone        bool    // run each benchmark once, in a program of its own
	what         string  // what the baseline is
}

// rows is the table. Targets and gates of ratios hold on any machine; absolute ones are meant for a
// laptop of today.
var rows = []row{
	{no: "1", measure: "spawn, exit, wait (with one question to an instant model)", pkg: "./kernel", ours: "SpawnExitWait/rnix", base: "SpawnExitWait/goroutine", target: 2.5, gate: 4, what: "goroutine and channel"},
	{no: "1", measure: "the same of a body, which asks nobody", pkg: "./kernel", ours: "SpawnExitWait/bodies", base: "SpawnExitWait/goroutine", target: 2.5, gate: 4, what: "goroutine and channel"},
	{no: "1", measure: "memory of an agent", pkg: "./kernel", ours: "SpawnExitWait/rnix", base: "SpawnExitWait/goroutine", unit: "B/op", absolute: true, target: 512, what: "goroutine and channel"},
	{no: "1", measure: "its allocations", pkg: "./kernel", ours: "SpawnExitWait/rnix", base: "SpawnExitWait/goroutine", unit: "allocs/op", absolute: true, target: 4, what: "goroutine and channel"},
	{no: "1", measure: "allocations of a body", pkg: "./kernel", ours: "SpawnExitWait/bodies", base: "SpawnExitWait/goroutine", unit: "allocs/op", absolute: true, target: 4, what: "goroutine and channel"},
	{no: "2", measure: "idle process, resident memory", pkg: "./kernel", ours: "IdleProcess/10000/rnix", base: "IdleProcess/10000/goroutine", unit: "RSS-B/proc", target: 1.15, gate: 1.4, alone: true, what: "parked goroutine"},
	{no: "2", measure: "idle process, heap", pkg: "./kernel", ours: "IdleProcess/10000/rnix", base: "IdleProcess/10000/goroutine", unit: "heap-B/proc", alone: true, what: "parked goroutine"},
	{no: "2", measure: "100,000 idle processes, resident memory of each", pkg: "./kernel", ours: "IdleProcess/100000/rnix", base: "IdleProcess/100000/goroutine", unit: "RSS-B/proc", target: 1.15, gate: 1.4, alone: true, what: "parked goroutine"},
	{no: "2b", measure: "a million suspended, memory of each", pkg: "./internal/step", ours: "MillionSuspended/open", unit: "RSS-B/proc", absolute: true, target: 700, gate: 1000, alone: true},
	{no: "2b", measure: "a million suspended, index opened at a start", pkg: "./internal/step", ours: "MillionSuspended/open", base: "MillionSuspended/read", alone: true, what: "the bytes of its file read"},
	{no: "2b", measure: "a million suspended, all listed", pkg: "./internal/step", ours: "MillionSuspended/open", unit: "list-ns", alone: true},
	{no: "2c", measure: "full garbage collection with 10,000 idle processes", pkg: "./kernel", ours: "IdleProcess/10000/rnix", base: "IdleProcess/10000/goroutine", unit: "GC-ns", target: 2, gate: 3, alone: true, what: "10,000 goroutines"},
	{no: "2c", measure: "full garbage collection with 100,000 idle processes", pkg: "./kernel", ours: "IdleProcess/100000/rnix", base: "IdleProcess/100000/goroutine", unit: "GC-ns", target: 2, gate: 3, alone: true, what: "100,000 goroutines"},
	{no: "3a", measure: "message, one way", pkg: "./kernel/internal/mailbox", ours: "Send/rnix", base: "Send/channel", target: 1.3, gate: 1.8, what: "channel with as much room"},
	{no: "3b", measure: "message and answer", pkg: "./kernel/internal/mailbox", ours: "PingPong/rnix", base: "PingPong/channel", target: 1.2, gate: 1.8, what: "two channels"},
	{no: "3c", measure: "message, 1,000 senders to one", pkg: "./kernel/internal/mailbox", ours: "FanIn1000/rnix", base: "FanIn1000/channel", target: 1.6, gate: 1.9, what: "channel with as much room"},
	{no: "4", measure: "pause and resume of a group of 1,000 agents, for one of the two", pkg: "./kernel", ours: "SignalGroup1000/rnix", base: "SignalGroup1000/channels", target: 1.6, gate: 3, what: "1,000 channel sends"},
	{no: "4", measure: "the same of bodies, which ask nobody", pkg: "./kernel", ours: "SignalGroup1000/bodies", base: "SignalGroup1000/channels", target: 1.6, gate: 3, what: "1,000 channel sends"},
	{no: "5", measure: "kill of a tree of 1,000 agents", pkg: "./kernel", ours: "KillTree1000/rnix", base: "KillTree1000/contexts", target: 1.3, gate: 2.5, what: "tree of contexts"},
	{no: "5", measure: "the same of bodies, which ask nobody", pkg: "./kernel", ours: "KillTree1000/bodies", base: "KillTree1000/contexts", target: 1.3, gate: 2.5, what: "tree of contexts"},
	{no: "6", measure: "pipe, 64 B", pkg: "./kernel/internal/pipe", ours: "Pipe/rnix/64B", base: "Pipe/memcpy/64B", target: 4, gate: 6, what: "two memcpys"},
	{no: "6", measure: "pipe, 4 KiB", pkg: "./kernel/internal/pipe", ours: "Pipe/rnix/4KiB", base: "Pipe/memcpy/4KiB", target: 3, gate: 5, what: "two memcpys"},
	{no: "6", measure: "pipe, 64 KiB", pkg: "./kernel/internal/pipe", ours: "Pipe/rnix/64KiB", base: "Pipe/memcpy/64KiB", target: 1.3, gate: 2, what: "two memcpys"},
	{no: "7", measure: "lookup among 1,000 devices", pkg: "./vfs", ours: "Lookup", base: "BareMap", target: 1.6, gate: 2.5, what: "map, probed upwards"},
	{no: "7", measure: "its allocations", pkg: "./vfs", ours: "Lookup", base: "BareMap", unit: "allocs/op", absolute: true, target: 0, gate: 0.5, what: "map, probed upwards"},
	{no: "8a", measure: "call to the daemon (HTTP, JSON)", pkg: "./ipc", ours: "Call/call", base: "Call/bare", target: 8, what: "bare socket, fixed frames"},
	{no: "8a", measure: "connect, call, close", pkg: "./ipc", ours: "Call/connect,_call,_close", base: "Call/bare", what: "bare socket, open"},
	{no: "8b", measure: "event on a stream", pkg: "./ipc", ours: "Stream/event", base: "Stream/bare", absolute: true, target: 2000, gate: 4000, what: "the same bytes, buffered"},
	{no: "8b", measure: "its allocations", pkg: "./ipc", ours: "Stream/event", base: "Stream/bare", unit: "allocs/op", absolute: true, target: 0, gate: 0.5, what: "the same bytes, buffered"},
	{no: "8b", measure: "event, encoded", pkg: "./internal/event", ours: "Encode/AppendJSON", base: "Encode/encoding_json", what: "encoding/json"},
	{no: "8c", measure: "`rnix ps`, fork to exit", pkg: "./cmd/rnix", ours: "Ps/ps", base: "Ps/empty", target: 2, what: "Go program that does nothing"},
	{no: "8c", measure: "`rnix ps`, fork to exit", pkg: "./cmd/rnix", ours: "Ps/ps", base: "Ps/true", what: "/bin/true"},
	{no: "8c", measure: "`rnix version` (starts, asks nobody)", pkg: "./cmd/rnix", ours: "Ps/version", base: "Ps/empty", what: "Go program that does nothing"},
	{no: "8e", measure: "word of an answer, from the vendor's socket to the terminal", pkg: "./cmd/rnix", ours: "TextOnScreen/rnix", base: "TextOnScreen/claude", unit: "word-ns", absolute: true, target: 100_000_000, alone: true, what: "claude"},
	{no: "8e", measure: "the same", pkg: "./cmd/rnix", ours: "TextOnScreen/rnix", base: "TextOnScreen/codex", unit: "word-ns", absolute: true, target: 100_000_000, alone: true, what: "codex"},
	{no: "8e", measure: "within which 19 of 20 words are there", pkg: "./cmd/rnix", ours: "TextOnScreen/rnix", base: "TextOnScreen/claude", unit: "word95-ns", absolute: true, target: 100_000_000, alone: true, what: "claude"},
	{no: "8e", measure: "the same", pkg: "./cmd/rnix", ours: "TextOnScreen/rnix", base: "TextOnScreen/codex", unit: "word95-ns", absolute: true, target: 100_000_000, alone: true, what: "codex"},
	{no: "9a", measure: "step with its record written, run of 200", pkg: "./kernel", ours: "Step/rnix-written/200", base: "Step/bare/200", unit: "ns/step", target: 10, gate: 12, what: "loop without a kernel"},
	{no: "9a", measure: "step, nothing kept, run of 200", pkg: "./kernel", ours: "Step/rnix-memory/200", base: "Step/bare/200", unit: "ns/step", what: "loop without a kernel"},
	{no: "9b", measure: "growth: a step of 200 beside one of 20", pkg: "./kernel", ours: "Step/rnix-written/200", base: "Step/rnix-written/20", unit: "ns/step", target: 1.1, gate: 1.3, what: "run of 20"},
	{no: "9c", measure: "bytes on disk for a step", pkg: "./kernel", ours: "Step/rnix-written/200", base: "Step/bare/200", unit: "B/step", target: 1.5, gate: 2, what: "bytes of its messages"},
	{no: "D", measure: "step appended, not synced", pkg: "./internal/step", ours: "Step/unsynced", base: "Step/bare_unsynced", absolute: true, target: 50_000, what: "two bare writes"},
	{no: "D", measure: "step appended and synced", pkg: "./internal/step", ours: "Step/synced", base: "Step/bare_synced", target: 1.2, what: "two bare writes and fsyncs"},
	{no: "D", measure: "history of 1,000 steps read", pkg: "./internal/step", ours: "ReadThousandSteps", absolute: true, target: 15_000_000},
	{no: "D", measure: "100 steps recovered", pkg: "./internal/recovery", ours: "Recover/whole/100", base: "Recover/bytes/100", what: "their bytes read"},
	{no: "D", measure: "100 steps recovered, with a checkpoint", pkg: "./internal/recovery", ours: "Recover/checkpoint/100", base: "Recover/bytes/100", what: "their bytes read"},
	{no: "D", measure: "1,000 steps recovered", pkg: "./internal/recovery", ours: "Recover/whole/1000", base: "Recover/bytes/1000", absolute: true, target: 15_000_000, what: "their bytes read"},
	{no: "D", measure: "1,000 steps recovered, with a checkpoint", pkg: "./internal/recovery", ours: "Recover/checkpoint/1000", base: "Recover/bytes/1000", absolute: true, target: 15_000_000, what: "their bytes read"},
	{no: "D", measure: "10,000 steps recovered", pkg: "./internal/recovery", ours: "Recover/whole/10000", base: "Recover/bytes/10000", what: "their bytes read"},
	{no: "D", measure: "10,000 steps recovered, with a checkpoint", pkg: "./internal/recovery", ours: "Recover/checkpoint/10000", base: "Recover/bytes/10000", what: "their bytes read"},
	{no: "D", measure: "history of 1,000 steps forked, synced", pkg: "./internal/step", ours: "Fork/fork", base: "Fork/bytes", what: "as many bytes written and synced"},
	{no: "D", measure: "checkpoints of 100 steps, bytes for each", pkg: "./internal/records", ours: "Checkpoints/written/100", base: "Checkpoints/history/100", unit: "B/step", target: 8, gate: 9, alone: true, what: "bytes of the history"},
	{no: "D", measure: "checkpoints of 1,000 steps, bytes for each", pkg: "./internal/records", ours: "Checkpoints/written/1000", base: "Checkpoints/history/1000", unit: "B/step", target: 8, gate: 9, alone: true, what: "bytes of the history"},
	{no: "D", measure: "checkpoints of 5,000 steps, bytes for each", pkg: "./internal/records", ours: "Checkpoints/written/5000", base: "Checkpoints/history/5000", unit: "B/step", target: 8, gate: 9, alone: true, what: "bytes of the history"},
	{no: "D", measure: "daemon started with 10,000 histories, until it serves", pkg: "./cmd/rnix", ours: "Start/10000", base: "Start/0", what: "with none"},
	{no: "D", measure: "the same, until `ps -a` has answered", pkg: "./cmd/rnix", ours: "Start/10000", base: "Start/0", unit: "answer-ns", absolute: true, target: 300_000_000, what: "with none"},
	{no: "D", measure: "`ps -a` alone, of 10,000 histories", pkg: "./cmd/rnix", ours: "Start/10000", base: "Start/0", unit: "ps-ns", what: "of none"},
	{no: "D", measure: "index of 10,000 histories opened", pkg: "./internal/step", ours: "OpenIndex/clean", base: "OpenIndex/rebuild", absolute: true, target: 300_000_000, what: "index built anew"},
	{no: "S", measure: "snapshot of 10,000 files by git, nothing changed", pkg: "./internal/workspace", ours: "Take/10000/git/unchanged", base: "Take/10000/git/status", what: "git status"},
	{no: "S", measure: "snapshot of 10,000 files by git, one changed", pkg: "./internal/workspace", ours: "Take/10000/git/one_changed", base: "Take/10000/git/status", what: "git status"},
	{no: "S", measure: "snapshot of 10,000 files by copy, nothing changed", pkg: "./internal/workspace", ours: "Take/10000/copy/unchanged", base: "Take/10000/git/status", what: "git status"},
	{no: "S", measure: "snapshot of 10,000 files by copy, one changed", pkg: "./internal/workspace", ours: "Take/10000/copy/one_changed", base: "Take/10000/git/status", what: "git status"},
	{no: "S", measure: "snapshot of 50 files by git, nothing changed", pkg: "./internal/workspace", ours: "Take/50/git/unchanged", base: "Take/50/git/status", what: "git status"},
	{no: "S", measure: "snapshot of 50 files by git, one changed", pkg: "./internal/workspace", ours: "Take/50/git/one_changed", base: "Take/50/git/status", absolute: true, target: 25_000_000, what: "git status"},
	{no: "S", measure: "snapshot of 50 files by copy, nothing changed", pkg: "./internal/workspace", ours: "Take/50/copy/unchanged", base: "Take/50/git/status", what: "git status"},
	{no: "S", measure: "snapshot of 50 files by copy, one changed", pkg: "./internal/workspace", ours: "Take/50/copy/one_changed", base: "Take/50/git/status", what: "git status"},
	{no: "S", measure: "command in the sandbox, by bubblewrap", pkg: "./internal/sandbox", ours: "Command/bwrap", base: "Command/bare", what: "the same, not confined"},
	{no: "S", measure: "command in the sandbox, by Landlock", pkg: "./internal/sandbox", ours: "Command/landlock", base: "Command/bare", what: "the same, not confined"},
	{no: "S", measure: "HTTP request by the proxy of a box", pkg: "./internal/egress", ours: "Request/proxy", base: "Request/direct", what: "the same, direct"},
	{no: "S", measure: "git that looks, in its box", pkg: "./internal/workspace", ours: "Git/looks", base: "Git/bare", absolute: true, target: 12_000_000, what: "the same, not confined"},
	{no: "S", measure: "short child started and waited for", pkg: "./internal/workspace", ours: "Take/50/start/ours", base: "Take/50/start/bare", target: 2, what: "the same by os/exec"},
	{no: "10", measure: "request of 200 KiB, built and sent", pkg: "./kernel/internal/loop", ours: "RequestSent/rnix", base: "RequestSent/bare", target: 1.2, gate: 2, what: "the same bytes, sent"},
	{no: "10", measure: "2 messages appended, prompt built, at 64", pkg: "./context", ours: "Prompt/rnix/64", base: "Prompt/whole/64", what: "whole history, encoding/json"},
	{no: "10", measure: "the same at 500", pkg: "./context", ours: "Prompt/rnix/500", base: "Prompt/whole/500", what: "whole history, encoding/json"},
	{no: "10", measure: "the same at 2,000", pkg: "./context", ours: "Prompt/rnix/2000", base: "Prompt/whole/2000", what: "whole history, encoding/json"},
	{no: "10", measure: "whole run, 0 to 2,000 messages", pkg: "./context", ours: "WholeRun/rnix", base: "WholeRun/copy", what: "texts copied once"},
	{no: "10", measure: "request decoded by the model device, at 2,000 messages", pkg: "./drivers/llm", ours: "DecodeStep/2000", base: "DecodeStep/20", what: "at 20 messages"},
}
