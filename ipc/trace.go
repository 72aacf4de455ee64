package ipc

import (
	"time"

	"rnix/types"
)

// ShowTrace is about the time of processes.
var ShowTrace = Method[TraceRequest, TraceResponse]{Name: "trace", Doc: "trace returns who ran when in a process and in those below it, the chain that decided when it ended, and what made it fail"}

// TraceRequest asks for the spans of a process, alive or dead.
type TraceRequest struct {
	Target   string `json:"target"`
	Children *bool  `json:"children,omitempty"` // with all processes below it; null = true
	Limit    int    `json:"limit,omitempty"`    // spans, at most 50,000; 0 = 5,000. What matters least is left out first
	Content  bool   `json:"content,omitempty"`  // with what was said and answered, each text up to 64 KiB, all up to 32 MiB
}

// TraceResponse is the spans of a process. Its lists are never null.
type TraceResponse struct {
	Root  types.UUID `json:"root"`
	PID   types.PID  `json:"pid"`
	Start time.Time  `json:"start"` // of the root
	End   time.Time  `json:"end"`   // of what ended last, which may be later than the root
	Live  bool       `json:"live"`  // the root runs, or is paused
	Spans []Span     `json:"spans"` // a parent before its children, those by their start
	// Critical is the chain that decided when the root ended. It adds up to the time that the root ran; what
	// lies between two of its runs is left out. What a span decided that is cut stands with the one that it was in.
	Critical []PathPart `json:"critical"`
	Blame    []Blame    `json:"blame"` // from the root down to what made it fail; empty = it has not failed
	Cut      int        `json:"cut"`   // spans that are left out
	// Withheld counts texts that were asked for and left out, since all together would be too many.
	Withheld int `json:"withheld,omitempty"`
	// Missing are processes below the root whose histories are archived or could not be read, each with why, at most
	// some 20; and that there are too many.
	Missing []string `json:"missing,omitempty"`
}

// Span is one piece of time. Its ID is the same each time that the same records are read.
type Span struct {
	ID     string         `json:"id"`               // 16 hexadecimal digits
	Parent string         `json:"parent,omitempty"` // empty = the root
	PID    types.PID      `json:"pid"`              // of the run that it began in
	UUID   types.UUID     `json:"uuid"`
	Kind   types.SpanKind `json:"kind"`
	Name   string         `json:"name"` // of the process, the model or the tool; what is waited for
	Start  time.Time      `json:"start"`
	Dur    time.Duration  `json:"dur_ns"`
	// Open says that there is no end: Dur goes up to what is known last, or to now if its process lives.
	Open   bool             `json:"open,omitempty"`
	Status types.SpanStatus `json:"status"`
	Err    string           `json:"error,omitempty"`
	Code   types.ErrCode    `json:"code,omitempty"`
	Step   int              `json:"step,omitempty"`
	Run    int              `json:"run,omitempty"` // in which it began, from 1
	// Idle says of a wait that its process did not run: between two runs no time is spent.
	Idle bool `json:"idle,omitempty"`
	// IdleNs is how much of Dur lies between runs.
	IdleNs time.Duration `json:"idle_ns,omitempty"`

	// Of tools.
	CallID     string              `json:"call_id,omitempty"`
	Attempt    int                 `json:"attempt,omitempty"`
	Verdict    types.LedgerVerdict `json:"verdict,omitempty"`
	Path       string              `json:"path,omitempty"`
	Effect     string              `json:"effect,omitempty"`
	Background bool                `json:"background,omitempty"` // a start that did not wait for the child
	Child      *types.UUID         `json:"child,omitempty"`      // the process that it started
	Failure    types.FailureKind   `json:"failure,omitempty"`    // how it failed; Status says so, too
	ExitCode   *int                `json:"exit_code,omitempty"`  // of a command that ended otherwise than with 0

	// Of models, and in sum of processes, without those below them.
	Provider     string  `json:"provider,omitempty"`
	Model        string  `json:"model,omitempty"`
	StopReason   string  `json:"stop_reason,omitempty"`
	Tokens       int     `json:"tokens,omitempty"`
	PromptTokens int     `json:"prompt_tokens,omitempty"` // without those of the cache
	OutputTokens int     `json:"output_tokens,omitempty"`
	CacheRead    int     `json:"cache_read_tokens,omitempty"`
	CacheWrite   int     `json:"cache_write_tokens,omitempty"`
	Estimated    bool    `json:"estimated,omitempty"`
	CostUSD      float64 `json:"cost_usd,omitempty"`

	// Of processes.
	Agent  string            `json:"agent,omitempty"`
	Body   string            `json:"body,omitempty"` // what it is that is no agent: compose, supervisor
	Intent string            `json:"intent,omitempty"`
	Runs   int               `json:"runs,omitempty"`
	Exit   *types.ExitStatus `json:"exit,omitempty"`
	Damage string            `json:"damage,omitempty"` // why its history could be read only in part

	// Critical says that the critical path goes through it or something below it; CriticalNs is how much of
	// the path is its own, and in nothing below it that is there.
	Critical   bool          `json:"critical,omitempty"`
	CriticalNs time.Duration `json:"critical_ns,omitempty"`

	// Input and Output are what was said and answered, only if they were asked for.
	Input  string `json:"input,omitempty"`
	Output string `json:"output,omitempty"`
}

// End is when the span ended, or up to when it is known.
func (s *Span) End() time.Time { return s.Start.Add(s.Dur) }

// PathPart is a piece of the critical path: in this time, this span decided.
type PathPart struct {
	Span string    `json:"span"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Blame is one link of the chain from a process that has failed down to what made it fail.
type Blame struct {
	Span string         `json:"span"` // of a node: its process, or that of its run if it has none
	PID  types.PID      `json:"pid"`  // likewise
	UUID types.UUID     `json:"uuid"`
	Kind types.SpanKind `json:"kind"`
	Name string         `json:"name"`
	Step int            `json:"step,omitempty"`
	Code types.ErrCode  `json:"code,omitempty"`
	Err  string         `json:"error"`
	// Lost are the nodes of a workflow that were not run because this one failed; null = none.
	Lost []string `json:"not_run,omitempty"`
}
