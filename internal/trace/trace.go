// Package trace makes spans of histories: who ran when, within what, and what it waited for. It finds the
// chain that decided when a process ended, the leaf that made it fail, and writes spans in the form of
// OpenTelemetry. It is pure: it knows no files, no processes and no clock but that of the records.
//
// What has no end in the records is open, and lasts as long as is known of it; nothing is invented. A clock
// that was set back makes no negative time: what the records measured goes before what they read.
package trace

import (
	"time"

	"rnix/internal/compose"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// Kind says what a span is of. Part of the wire format.
type Kind = types.SpanKind

// The kinds.
const (
	Process Kind = "process" // a history, over all its runs
	Step    Kind = "step"
	Model   Kind = "model" // a request to a model
	Tool    Kind = "tool"  // an attempt of a call
	Wait    Kind = "wait"  // a pause, a limit, a message that has not come; or nobody ran
	Node    Kind = "node"  // of a workflow, in a Blame only: one that failed though no process of it did
)

// Status says how a span ended. Part of the wire format.
type Status = types.SpanStatus

// The states.
const (
	OK     Status = "ok"
	Failed Status = "error"
	Open   Status = "open" // it has no end in the records: it goes on, or nobody knows
)

// Span is one piece of time. Its ID is the same each time that the same records are read.
type Span struct {
	ID     string        `json:"id"`               // 16 hexadecimal digits
	Parent string        `json:"parent,omitempty"` // empty = the root
	PID    types.PID     `json:"pid"`              // of the run that it began in
	UUID   types.UUID    `json:"uuid"`
	Kind   Kind          `json:"kind"`
	Name   string        `json:"name"` // of the process, the model or the tool; what is waited for
	Start  time.Time     `json:"start"`
	Dur    time.Duration `json:"dur_ns"`
	// Open says that there is no end: Dur goes up to what is known last, or to now if its process lives.
	Open   bool          `json:"open,omitempty"`
	Status Status        `json:"status"`
	Err    string        `json:"error,omitempty"`
	Code   types.ErrCode `json:"code,omitempty"`
	Step   int           `json:"step,omitempty"`
	Run    int           `json:"run,omitempty"` // in which it began, from 1
	// Idle says of a wait that its process did not run: between two runs no time is spent.
	Idle bool `json:"idle,omitempty"`
	// IdleNs is how much of Dur lies between runs.
	IdleNs time.Duration `json:"idle_ns,omitempty"`

	// Of tools.
	CallID     string             `json:"call_id,omitempty"`
	Attempt    int                `json:"attempt,omitempty"`
	Verdict    step.LedgerVerdict `json:"verdict,omitempty"`
	Path       string             `json:"path,omitempty"`
	Effect     string             `json:"effect,omitempty"`
	Background bool               `json:"background,omitempty"` // a start that did not wait for the child
	Child      *types.UUID        `json:"child,omitempty"`      // the process that it started
	Failure    step.FailureKind   `json:"failure,omitempty"`    // how it failed; Status says so, too
	ExitCode   *int               `json:"exit_code,omitempty"`  // of a command that ended otherwise than with 0

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

// Part is a piece of the critical path: in this time, this span decided.
type Part struct {
	Span string    `json:"span"`
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
}

// Blame is one link of the chain from a process that has failed down to what made it fail.
type Blame struct {
	Span string        `json:"span"` // of a node: its process, or that of its run if it has none
	PID  types.PID     `json:"pid"`  // likewise
	UUID types.UUID    `json:"uuid"`
	Kind Kind          `json:"kind"`
	Name string        `json:"name"`
	Step int           `json:"step,omitempty"`
	Code types.ErrCode `json:"code,omitempty"`
	Err  string        `json:"error"`
	// Lost are the nodes of a workflow that were not run because this one failed; null = none.
	Lost []string `json:"not_run,omitempty"`
}

// Source is a process of which spans are made.
type Source struct {
	History *step.History
	Parent  types.UUID    // zero = none that is known
	Events  []event.Event // of its file, in order: starts of steps, waits. May be empty or have gaps
	Live    bool          // it runs, or is paused
	// After are the processes whose end this one had to wait for before it was started; nil = not known.
	After []types.UUID
	// Nodes are what became of the nodes of a run of a workflow; nil = it is none, or not known.
	Nodes []compose.Status
	// Content says that Input and Output are filled in, each with at most 64 KiB, and all of a trace with 32 MiB.
	Content bool
}

// Trace is the spans of a process and of those below it.
type Trace struct {
	Spans    []Span // a parent before its children, those by their start
	Critical []Part // in order; without the time between runs of the root they add up to how long that took
	Blame    []Blame
	Withheld int // texts for which there was no room
}

// Root returns the span of the process that was asked for; nil if there is none.
func (t *Trace) Root() *Span {
	if len(t.Spans) == 0 {
		return nil
	}
	return &t.Spans[0]
}

// Maker makes a trace of sources that are handed to it one after the other. It keeps their spans and not their
// histories, so that these need not be in memory together. It is not safe for concurrent use.
type Maker struct {
	f   forest
	now time.Time
}

// NewMaker returns one without sources. now is when the histories were read.
func NewMaker(now time.Time) *Maker {
	return &Maker{f: forest{procs: map[types.UUID]*node{}, parents: map[types.UUID]types.UUID{}}, now: now}
}

// Add adds a source. The first one is the root; the others descend from it, and those above come before those below.
// It reports how many spans there are now.
func (m *Maker) Add(src *Source) (spans int) {
	m.f.add(src, m.now)
	return m.f.spans
}

// Trace makes the trace, and ends the use of the Maker.
func (m *Maker) Trace() *Trace {
	f := &m.f
	t := &Trace{Withheld: m.f.texts.withheld}
	if f.root == nil {
		return t
	}
	f.join()
	t.Critical = f.critical()
	t.Blame = f.blame()
	t.Spans = f.list()
	return t
}
