package ipc

import (
	"time"

	"rnix/types"
)

// Event is one entry of the event log. The daemon sends it as the log has encoded it.
type Event struct {
	Seq      uint64             `json:"seq"`
	Time     time.Time          `json:"time"`
	PID      types.PID          `json:"pid"`
	UUID     types.UUID         `json:"uuid"`
	Kind     types.EventKind    `json:"kind"`
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
	Answer   uint64             `json:"answer,omitempty"` // of what a model says: its answer; later ones have a greater number
	At       int                `json:"at,omitempty"`     // of what a model says: the place in all that this answer says in this category, in bytes
	Begin    uint64             `json:"begin,omitempty"`  // of a syscall: the event that said that it has begun; 0 = none did
}

// EventFilter picks events. The zero value picks all. What says that events are missing is always picked.
type EventFilter struct {
	// Classes are classes of events, or names of syscalls; ! before one leaves these out. Without one that has no !, everything
	// else is picked.
	Classes    []string      `json:"classes,omitempty"`
	Failed     bool          `json:"failed,omitempty"`     // only what failed
	Slow       time.Duration `json:"slow_ns,omitempty"`    // only what took at least so long
	Path       string        `json:"path,omitempty"`       // only calls on paths of this form, or of files of it
	Categories []string      `json:"categories,omitempty"` // of log lines: only these
	Log        bool          `json:"log,omitempty"`        // only what belongs into a log: what was said, and what went wrong
	Level      string        `json:"level,omitempty"`      // of log lines: this one and what is more important
}
