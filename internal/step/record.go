// Package step keeps the files of one history: steps.jsonl, the truth that recovery trusts, and the
// small files beside it. It owns their format and their durability and knows no process.
package step

import (
	"encoding/json"
	"time"

	rnixctx "rnix/context"
	"rnix/types"
)

// FormatVersion is the "v" of every line. Readers accept older versions and refuse newer ones.
// Part of the on-disk format.
const FormatVersion = 1

// Kind says what a line of steps.jsonl holds. Part of the on-disk format.
type Kind string

// The kinds.
const (
	KindMessage Kind = "message" // one message of the conversation
	KindIntent  Kind = "intent"  // a tool call is about to run
	KindResult  Kind = "result"  // a tool call has ended
	KindStep    Kind = "step"    // a step has ended: StepRecord
	KindMarker  Kind = "marker"  // spawn, exit, pause, compaction, ...
)

// Record is one line of steps.jsonl. Exactly one of the pointers is set, as Kind says. On disk the
// line ends with a CRC-32C of what stands before it, as the key "crc".
type Record struct {
	V    int       `json:"v"`
	Kind Kind      `json:"kind"`
	Seq  uint64    `json:"seq"` // dense, from 1
	Time time.Time `json:"time"`
	// Joined says that the line was written in one piece with the line before it. Without it a line
	// begins a commit: everything before was on the disk then.
	Joined bool `json:"joined,omitempty"`

	Message *rnixctx.Message `json:"message,omitempty"`
	Answer  *Answer          `json:"answer,omitempty"` // with the message of a model's answer
	// Delivered says which messages of the mailbox a message of the conversation holds.
	Delivered []uint64    `json:"delivered,omitempty"`
	Intent    *Intent     `json:"intent,omitempty"`
	Result    *Result     `json:"result,omitempty"`
	Step      *StepRecord `json:"step,omitempty"`
	Marker    *Marker     `json:"marker,omitempty"`
}

// Answer is what is known of a model's answer before its step has ended: what it cost, and which step
// it belongs to. It is written with the answer, so that a crash behind it loses nothing that was paid.
type Answer struct {
	Step       int           `json:"step"`
	Prompt     int           `json:"prompt"` // how many messages were sent
	Started    time.Time     `json:"started"`
	ModelTime  time.Duration `json:"model_ns"`
	Provider   string        `json:"provider,omitempty"`
	Model      string        `json:"model,omitempty"`
	StopReason string        `json:"stop_reason,omitempty"`
	TokensUsed int           `json:"tokens_used"`
	Input      int           `json:"input_tokens,omitempty"`
	Output     int           `json:"output_tokens,omitempty"`
	CacheRead  int           `json:"cache_read_tokens,omitempty"`
	CacheWrite int           `json:"cache_write_tokens,omitempty"`
	Estimated  bool          `json:"estimated,omitempty"`
	CostUSD    float64       `json:"cost_usd,omitempty"`
	CostFrom   string        `json:"cost_from,omitempty"` // provider, or where the price stands; empty = not known
	// Metered says that its tokens are those of requests that have counted by themselves (MarkerMetered): they are shown, and count no more.
	Metered bool `json:"metered,omitempty"`
}

// Answer returns what the record says of the model's answer.
func (s *StepRecord) Answer() *Answer {
	return &Answer{Step: s.StepNumber, Prompt: s.MessageCount, Started: s.Timestamp, ModelTime: s.ModelTime, Provider: s.Provider, Model: s.Model,
		StopReason: s.StopReason, TokensUsed: s.TokensUsed, Input: s.Input, Output: s.Output, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite,
		Estimated: s.Estimated, CostUSD: s.CostUSD, CostFrom: s.CostFrom, Metered: s.Metered}
}

// Begin returns the record of a step whose answer is there.
func (a *Answer) Begin() *StepRecord {
	return &StepRecord{StepNumber: a.Step, MessageCount: a.Prompt, Timestamp: a.Started, ModelTime: a.ModelTime, Provider: a.Provider, Model: a.Model,
		StopReason: a.StopReason, TokensUsed: a.TokensUsed, Input: a.Input, Output: a.Output, CacheRead: a.CacheRead, CacheWrite: a.CacheWrite,
		Estimated: a.Estimated, CostUSD: a.CostUSD, CostFrom: a.CostFrom, Metered: a.Metered}
}

// Intent says that a tool call is about to run. It is durable before the call begins.
type Intent struct {
	Step   int             `json:"step"`
	CallID string          `json:"call_id"`
	Tool   string          `json:"tool"`
	Path   string          `json:"path"`
	Input  json.RawMessage `json:"input,omitempty"` // on disk it stands in the assistant's message before
	Effect string          `json:"effect"`          // vfs.Effect
	// Child is the UUID of the process that a spawn call is about to start, so that it is found again
	// and never started twice.
	Child *types.UUID `json:"child,omitempty"`
	// Background says that the call does not wait for the Child.
	Background bool `json:"background,omitempty"`
	// Key names what the call is: the same for the same call of the same answer, in every run.
	Key string `json:"key,omitempty"`
	// Before is the snapshot of the workspace that can take the call back.
	Before *Snapshot `json:"before,omitempty"`
}

// Snapshot names the files of a workspace as they were at one moment. Package workspace keeps them.
type Snapshot struct {
	Step int    `json:"step"` // under which step they are kept
	Kind string `json:"kind"` // git or copy
	ID   string `json:"id"`
	Root string `json:"root"` // the directory that was kept; the workspace, or one above it
	// Limited says what was left out, and why; empty = it is complete.
	Limited string `json:"limited,omitempty"`
}

// Result says how a tool call ended. An Intent without a Result is in doubt.
type Result struct {
	Step     int           `json:"step"`
	CallID   string        `json:"call_id"`
	Tool     string        `json:"tool"`
	Output   string        `json:"output,omitempty"` // as the model sees it; on disk it stands in the message behind
	Error    string        `json:"error,omitempty"`
	Code     types.ErrCode `json:"code,omitempty"`
	Duration time.Duration `json:"duration_ns"`
}

// Marker is a fact about the life of the history.
type Marker struct {
	Name   string            `json:"name"` // see the constants
	PID    types.PID         `json:"pid,omitempty"`
	Text   string            `json:"text,omitempty"`
	Exit   *types.ExitStatus `json:"exit,omitempty"`
	Detail json.RawMessage   `json:"detail,omitempty"` // see the constants
}

// Settled returns what a run was started with, of the marker of its beginning. An early version wrote nothing there.
func (m Marker) Settled() (s Settled) {
	if json.Unmarshal(m.Detail, &s) != nil {
		return Settled{}
	}
	return s
}

// StepRecord is one iteration of the reasoning loop: the fields of the specification, and those that
// they do not cover. On disk MessageCount says how many message lines the prompt of this step consisted
// of, and what stands in message lines (the prompt, the answer, inputs and results of calls) is left
// out; readers fill it in again.
type StepRecord struct {
	StepNumber   int               `json:"step_number"`
	Timestamp    time.Time         `json:"timestamp"` // start of the step
	Messages     []rnixctx.Message `json:"messages,omitempty"`
	MessageCount int               `json:"message_count"`
	TokensUsed   int               `json:"tokens_used"`
	RawResponse  string            `json:"raw_response,omitempty"`
	Action       string            `json:"action"` // tool_call, plan, spawn, complete, specialize, replan, text
	Summary      string            `json:"summary"`
	ToolPath     string            `json:"tool_path,omitempty"`
	ToolInput    string            `json:"tool_input,omitempty"`
	ToolResult   string            `json:"tool_result,omitempty"`
	ToolError    string            `json:"tool_error,omitempty"`

	// ToolCalls has every call of the step; the four Tool fields above are its first entry.
	ToolCalls []Call `json:"tool_calls,omitempty"`
	// FailedCalls is how many of them failed, as FailureOf says; records of earlier versions do not have it.
	FailedCalls int           `json:"failed_calls,omitempty"`
	Duration    time.Duration `json:"duration_ns"`
	ModelTime   time.Duration `json:"model_ns"`
	Provider    string        `json:"provider,omitempty"`
	Model       string        `json:"model,omitempty"`
	StopReason  string        `json:"stop_reason,omitempty"`
	Input       int           `json:"input_tokens,omitempty"`
	Output      int           `json:"output_tokens,omitempty"`
	CacheRead   int           `json:"cache_read_tokens,omitempty"`
	CacheWrite  int           `json:"cache_write_tokens,omitempty"`
	Estimated   bool          `json:"estimated,omitempty"` // the token counts are ours, not the provider's
	CostUSD     float64       `json:"cost_usd,omitempty"`
	CostFrom    string        `json:"cost_from,omitempty"` // as of Answer
	Metered     bool          `json:"metered,omitempty"`   // as of Answer
	Error       string        `json:"error,omitempty"`     // why the step failed, if it did
	// Files is the snapshot of the workspace after the step, if it may have changed files.
	Files *Snapshot `json:"files,omitempty"`
	// End is how the run ends that this step has ended; nil = it goes on. It is here and not in the marker of the end
	// alone, so that nobody who goes on after a crash asks the model once more for what it has answered.
	End *Ending `json:"end,omitempty"`
}

// Ending is the end of a run by an answer of its model.
type Ending struct {
	Exit   types.ExitStatus `json:"exit"`
	Result string           `json:"result,omitempty"`
}

// Call is one tool call of a step.
type Call struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Path     string        `json:"path"`
	Input    string        `json:"input,omitempty"`
	Result   string        `json:"result,omitempty"`
	Error    string        `json:"error,omitempty"`
	Code     types.ErrCode `json:"code,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	// Failure says how a command failed that has answered: exit 1. It is not on disk; whoever shows the call fills it in.
	Failure string `json:"failure,omitempty"`
}

// Settled is the Detail of spawn and resumed markers: what a run was started with, which a later run
// needs. It holds no environment values and no secrets.
type Settled struct {
	ProcInfo
	// SystemPrompt is what the agent was told, without where it works.
	SystemPrompt     string        `json:"system_prompt,omitempty"`
	AskedModel       string        `json:"asked_model,omitempty"` // empty = the provider's default
	FallbackProvider string        `json:"fallback_provider,omitempty"`
	FallbackModel    string        `json:"fallback_model,omitempty"`
	Effort           string        `json:"reasoning_effort,omitempty"`
	Timeout          time.Duration `json:"timeout_ns,omitempty"`
	// OutputSchema is the JSON Schema that the result must fit; null = any text will do.
	OutputSchema json.RawMessage `json:"output_schema,omitempty"`
	Descent
	// Inputs are what the process was given with its intent; their texts are files of the history.
	Inputs []InputRef `json:"inputs,omitempty"`
	// Settings is what the assembly needs to find the configuration again.
	Settings json.RawMessage `json:"settings,omitempty"`
	// Git is what the agent was told, behind SystemPrompt, of the git repository in which it works; null = nothing.
	Git *GitTold `json:"git,omitempty"`
	// Body is what a process that is no agent keeps; null for agents.
	Body *BodyRecord `json:"body,omitempty"`
	// Seal is the keyed sum of what of this gives the process rights (internal/rights); empty = an earlier version wrote it, or there is no key.
	Seal string `json:"seal,omitempty"`
	// Doubt is why what this says about rights is not believed; nil = it is, or nobody has looked. It is in no record.
	Doubt error `json:"-"`
}

// GitTold is what an agent was told of the git repository in which a directory is, and when git was asked. Part of the on-disk format.
type GitTold struct {
	Text string    `json:"text"`
	Dir  string    `json:"dir"`
	At   time.Time `json:"at"`
}

// Descent is what a process has of those above it, for when it goes on and they do not. The zero value: nobody is
// known above it. Part of the on-disk format.
type Descent struct {
	Depth   int        `json:"depth,omitempty"`    // how many are above it
	Root    types.UUID `json:"root,omitzero"`      // the history of the uppermost one
	ByAgent bool       `json:"by_agent,omitempty"` // an agent is above it
}

// BodyRecord is what a process without a model is: a supervisor, a run of a workflow. Part of the on-disk
// format.
type BodyRecord struct {
	Kind string          `json:"kind"`
	Spec json.RawMessage `json:"spec"`
}

// ProcInfo is proc-info.json: what a history looks like without reading it. It holds no environment
// values and no secrets.
type ProcInfo struct {
	V int `json:"v"`
	types.ProcStatus
	EarlierPIDs []types.PID        `json:"earlier_pids,omitempty"` // of the runs before, the first one first
	OriginUUID  types.UUID         `json:"origin_uuid"`
	State       types.ProcessState `json:"state"`
	Suspended   bool               `json:"suspended,omitempty"`
	types.Suspension
	WakeAt      time.Time     `json:"wake_at,omitzero"`          // when a suspended process goes on by itself
	OriginStep  int           `json:"origin_step,omitempty"`     // of a fork: the last step that it has of its origin
	Runs        int           `json:"runs,omitempty"`            // how often it was started or resumed
	ActiveTotal time.Duration `json:"active_total_ns,omitempty"` // lived, without pauses and the time between runs
	DeadAt      time.Time     `json:"dead_at,omitzero"`
	PausedTotal time.Duration `json:"paused_total_ns,omitempty"`
	Spending    []Spending    `json:"spending,omitempty"` // what it has used itself, of which model and on which day
	Purse       *PurseWait    `json:"purse,omitempty"`    // of a suspended one: the budget that it waits for
	// FailedTaken are those of its failed calls that a fork has of its origin. FailedCounted says that its last run counted them; earlier versions did not.
	FailedTaken    int      `json:"failed_calls_taken,omitempty"`
	FailedCounted  bool     `json:"failed_calls_counted,omitempty"`
	AllowedDevices []string `json:"allowed_devices"` // null = all
	DeniedDevices  []string `json:"denied_devices,omitempty"`
	ReadRoots      []string `json:"read_roots,omitempty"`
	MCPMounts      []string `json:"mcp_mounts,omitempty"`
	MCPDown        []string `json:"mcp_down,omitempty"` // its servers that could not be reached, each with the reason
	Result         string   `json:"result,omitempty"`
	Schema         bool     `json:"schema,omitempty"` // the result is to fit a JSON Schema
	Asks           []Ask    `json:"asks,omitempty"`   // of a suspended one: those that have no answer yet
}
