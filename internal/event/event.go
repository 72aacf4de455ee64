// Package event is the one event log of a kernel: a ring in memory that the kernel appends to and
// that everybody who looks reads with a cursor of their own. Strace, logs, callbacks, dashboards,
// metrics and events.jsonl derive from it; recovery does not.
//
// It owns the sequence numbers, the encoding of events and events.jsonl. Append never blocks and
// knows no subscribers. It knows no process and does not judge what happens.
package event

import (
	"time"

	"rnix/types"
)

// Kind says what happened. Part of the wire format; new kinds go to the end.
type Kind = types.EventKind

// The kinds, with the fields of Event that they fill besides Seq, Time, PID, UUID and Kind.
const (
	Spawned      Kind = "spawned"         // PPID, Intent, Provider, Model, Agent, Total (step limit)
	StepStarted  Kind = "step_started"    // Step, Total
	StepEnded    Kind = "step_ended"      // Step, Total, Text (summary), Name (action), Tokens and CostUSD (of the step), Dur
	Syscall      Kind = "syscall"         // Name, Path, Args, Result, Err, Code, Dur, Begin; PID is who called, 0 = a person or the kernel
	SyscallBegun Kind = "syscall_begin"   // Name, Path, Args: one that may take long has begun; a Syscall with Begin says how it ended
	LogLine      Kind = "log"             // Name (category: think, tool, output, warning), Text; Answer, At, Total (bytes of the answer that it covers) of what a model says
	StateChanged Kind = "state"           // From, To
	Renamed      Kind = "renamed"         // Name (the new one; empty = it has none), Text (the old one)
	Signalled    Kind = "signal"          // Name (signal), Result (delivered, blocked, handled, ignored)
	Paused       Kind = "paused"          // Text (why)
	Resumed      Kind = "resumed"         // Dur (how long it was paused)
	Waiting      Kind = "waiting"         // Text (wait reason; empty = no longer waiting), Until
	Exited       Kind = "exited"          // Exit, Text (result, bounded), Tokens, Dur
	Reaped       Kind = "reaped"          //
	Reparented   Kind = "reparented"      // PPID (the new parent)
	Compacted    Kind = "compacted"       // Text
	Mounted      Kind = "mounted"         // Path, Dur
	Unmounted    Kind = "unmounted"       // Path
	StorageError Kind = "storage_error"   // Path, Err
	Grouped      Kind = "grouped"         // Name (joined, left), Tokens is not used; Step holds the group
	Snapshot     Kind = "snapshot"        // Step, Name (git, copy), Text (id), Dur, or Err: the files of the workspace were kept, or could not be
	Messaged     Kind = "messaged"        // Name (message, steer, child), PPID (the sender), Args (its number), Text (excerpt): a message has come
	Delivered    Kind = "delivered"       // Args (numbers): messages have reached the conversation
	NodeChanged  Kind = "node"            // Name (the node of a run of a workflow), Result (its phase), Step (its attempt), Text (why), Args (UUID of the attempt)
	Stalled      Kind = "heartbeat_stall" // Result (suspect, over), Dur (since when there was no progress), Name (what is done: warn, restart, kill), Step, Text (what it does)
	Leased       Kind = "lease"           // Name (the session of a platform), Result (ours, run out, lost), Step (the fencing token), Dur (ours: how long ago that was confirmed), Until (when the lease ends without another word), Text (why)
	Refused      Kind = "refused"         // Name (read, write, network, socket, rights: what the sandbox did not let a command do; memory, processes: more than what a process starts may use; changed: what it could not prevent), Path (the path, host or address; empty = not known), Text (a sentence)
	Asked        Kind = "asked"           // Args (its number), Name (the tool), Text (the call in a line), Result (the rule): a person is asked about a call
	Answered     Kind = "answered"        // Args (its number), Name (the tool), Result (allow, deny), Text (why): a person has answered
	ServerLine   Kind = "mcp_line"        // Path (/mnt/mcp/NAME), Name (stderr, or the level of a message), Text: what an MCP server has said for people
	Piece        Kind = "piece"           // Name (think, output), Text, Answer, At: what a model has just said; only for who listens, never in the log
	Lag          Kind = "lag"             // Text (which events are missing before this one); only in files, never in the log
)

// Names of events of the kind Refused, and of the bounds that they tell of.
const (
	BoundMemory    = "memory"
	BoundProcesses = "processes"
)

// Event is one entry of the log. It is flat so that it can be encoded by hand and shared.
type Event struct {
	Seq      uint64             `json:"seq"`
	Time     time.Time          `json:"time"`
	PID      types.PID          `json:"pid"`
	UUID     types.UUID         `json:"uuid"`
	Kind     Kind               `json:"kind"`
	PPID     types.PID          `json:"ppid,omitempty"`
	Step     int                `json:"step,omitempty"`
	Total    int                `json:"total,omitempty"`
	Name     string             `json:"name,omitempty"`
	Path     string             `json:"path,omitempty"`
	Args     string             `json:"args,omitempty"`
	Result   string             `json:"result,omitempty"`
	Err      string             `json:"error,omitempty"`
	Code     types.ErrCode      `json:"code,omitempty"`
	Dur      time.Duration      `json:"dur_ns,omitempty"`
	Text     string             `json:"text,omitempty"`
	Tokens   int                `json:"tokens,omitempty"`
	CostUSD  float64            `json:"cost_usd,omitempty"` // 0 = nothing, or nobody knows
	Until    time.Time          `json:"until,omitzero"`
	From     types.ProcessState `json:"from,omitempty"`
	To       types.ProcessState `json:"to,omitempty"`
	Exit     *types.ExitStatus  `json:"exit,omitempty"`
	Intent   string             `json:"intent,omitempty"`
	Agent    string             `json:"agent,omitempty"`
	Provider string             `json:"provider,omitempty"`
	Model    string             `json:"model,omitempty"`
	Answer   uint64             `json:"answer,omitempty"` // the answer of a model: later ones have a greater number (when it began, in microseconds)
	At       int                `json:"at,omitempty"`     // the place in the answer's text of this Name, in bytes
	Begin    uint64             `json:"begin,omitempty"`  // Seq of the SyscallBegun that a Syscall ends; 0 = there was none
}
