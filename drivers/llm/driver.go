// Package llm serves /dev/llm/<provider>: models behind one small interface, LLMDriver, and one
// device (device.go) that puts any of them into the VFS. Retry, rate limits, fallback, concurrency
// and recording are decorators over the interface, not code in each driver.
//
// It knows no process and no kernel: a request is one JSON document, written to the device; the
// answer is another, read from it.
package llm

import (
	"context"
	"encoding/json"
	"time"

	rnixctx "rnix/context"
	"rnix/vfs"
)

// LLMDriver is a model. Implementations are safe for concurrent use, honour ctx, set deadlines of
// their own for the first byte and for silence, and classify failures by code: AUTH, RATE_LIMITED
// (with a *RateLimit in the chain), TIMEOUT, CANCELLED, INVALID (the request can never succeed,
// such as a prompt that is too long), UNAVAILABLE (worth a retry), DRIVER (anything else).
type LLMDriver interface {
	// Call performs one completion.
	Call(ctx context.Context, req LLMRequest) (*LLMResponse, error)
	// Stream performs one completion and delivers it in pieces. The channel is closed after exactly
	// one event of type EventDone or EventError. The caller must drain it or end ctx.
	Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error)
	// Info describes the driver without any I/O.
	Info() DriverInfo
}

// LLMRequest is one prompt. It is also the JSON document that is written to the device; Messages is
// its last key, so that a device can recognise an unchanged beginning.
type LLMRequest struct {
	Intent       string     `json:"intent,omitempty"`        // what the process is for; not part of the prompt when Messages is set
	SystemPrompt string     `json:"system_prompt,omitempty"` //
	Model        string     `json:"model,omitempty"`         // empty = the driver's default
	MaxTurns     int        `json:"max_turns,omitempty"`     // for CLIs; 0 = 1
	TimeoutMs    int64      `json:"timeout_ms,omitempty"`    // of the whole call; 0 = the driver's default
	MaxTokens    int        `json:"max_tokens,omitempty"`    // of the answer; 0 = the driver's default
	Effort       string     `json:"reasoning_effort,omitempty"`
	Tools        []ToolSpec `json:"tools,omitempty"`

	// Session names the conversation (a process UUID): drivers that keep a child or a cursor per
	// conversation key it by this. WorkDir is where a CLI is started.
	Session string `json:"session,omitempty"`
	WorkDir string `json:"work_dir,omitempty"`
	// Aside says that the question is no part of the conversation, which goes on without it: no child that is kept for the session gets it.
	Aside bool `json:"aside,omitempty"`

	// Messages is the conversation. When it is empty, Intent is sent as the one user message.
	Messages []rnixctx.Message `json:"messages,omitempty"`

	// Attachment reads the bytes of an image or a document that a message has; nil = there are none to be had. The device sets it.
	Attachment func(a rnixctx.Attachment) ([]byte, error) `json:"-"`
}

// ToolSpec is a tool as it is offered to the model.
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

// StopFailed is the stop reason of a program in a model's place that says itself that what was asked for has failed:
// the text is its result all the same, and the process ends with an error.
const StopFailed = "task_failed"

// StopRan is the stop reason of an answer whose calls have all been run by whoever answered: each has its Done. It is on
// record with the answer, so that a call whose end is not on record is not run after a crash. Part of the on-disk format.
const StopRan = "tools_ran"

// LLMResponse is a completion. It is also the JSON document that is read from the device.
type LLMResponse struct {
	Content    string             `json:"content"`
	TokensUsed int                `json:"tokens_used"` // Usage.Total()
	ToolCalls  []rnixctx.ToolCall `json:"tool_calls,omitempty"`
	Reasoning  string             `json:"reasoning,omitempty"` // for people
	Blocks     []rnixctx.Block    `json:"reasoning_blocks,omitempty"`
	StopReason string             `json:"stop_reason,omitempty"` // end_turn, tool_use, max_tokens, refusal, stop_sequence, or StopFailed
	Provider   string             `json:"provider,omitempty"`    // who answered, after a fallback
	Model      string             `json:"model,omitempty"`       // as the provider names it
	Usage      Usage              `json:"usage"`
	CostUSD    float64            `json:"cost_usd,omitempty"` // only if the provider said so
	// Done says how those of ToolCalls ended that the driver has run itself, as an agent's command line does
	// with tools of its own.
	Done []Done `json:"done,omitempty"`
}

// Done is how a call ended that the driver has run itself.
type Done struct {
	ID         string `json:"id"`
	Output     string `json:"output,omitempty"`
	IsError    bool   `json:"is_error,omitempty"`
	DurationMs int64  `json:"duration_ms,omitempty"`
	Reads      bool   `json:"reads,omitempty"` // it has changed nothing
}

// Usage counts tokens. The four parts do not overlap.
type Usage struct {
	Input      int  `json:"input_tokens"`
	Output     int  `json:"output_tokens"`
	CacheRead  int  `json:"cache_read_tokens,omitempty"`
	CacheWrite int  `json:"cache_write_tokens,omitempty"`
	Estimated  bool `json:"estimated,omitempty"` // counted by us (bytes/4), not by the provider
}

// Total returns the sum of all parts.
func (u Usage) Total() int { return u.Input + u.Output + u.CacheRead + u.CacheWrite }

// EventType is the type of a StreamEvent.
type EventType string

// The types.
const (
	EventText      EventType = "text"      // Text was added to the answer
	EventReasoning EventType = "reasoning" // Text was added to the reasoning
	EventWait      EventType = "wait"      // the call waits for Text, until Until if that is known; with neither it goes on
	EventWarning   EventType = "warning"   // Text is for the user, who may have to know it: a line
	EventDone      EventType = "done"      // Response is the whole answer
	EventError     EventType = "error"     // Err says why there is none
)

// StreamEvent is a piece of an answer under way.
type StreamEvent struct {
	Type     EventType
	Text     string
	Until    time.Time
	Response *LLMResponse
	Err      error
}

// waits reports whether a wait begins or changes; else, of type EventWait, it is over.
func (e *StreamEvent) waits() bool {
	return e.Type == EventWait && (e.Text != "" || !e.Until.IsZero())
}

// DriverInfo describes a driver.
type DriverInfo struct {
	Name          string `json:"name"`           // the provider's name, the last element of its path
	Driver        string `json:"driver"`         // claude-cli, cursor-cli, anthropic, openai, replay, offline
	Model         string `json:"model"`          // default model; may be empty if the CLI decides
	NativeTools   bool   `json:"native_tools"`   // false: the model answers with one JSON action as text
	ContextWindow int    `json:"context_window"` // in tokens; 0 = unknown

	// MaxAnswer is how many tokens an answer has at most when MaxTokens of its request is that many; with fewer,
	// as many, but for LeastAnswer. 0 = it cannot be bounded, or nobody knows how far. ExtraAnswer are tokens
	// beyond that bound, such as those to think with.
	MaxAnswer   int  `json:"max_answer,omitempty"`
	ExtraAnswer int  `json:"extra_answer,omitempty"`
	LeastAnswer int  `json:"least_answer,omitempty"`
	Free        bool `json:"free,omitempty"`      // it uses no tokens
	SaysCost    bool `json:"says_cost,omitempty"` // its answers say what they cost
	Acts        bool `json:"acts,omitempty"`      // it may change files by itself while it answers
	Aside       bool `json:"aside,omitempty"`     // it takes questions that are no part of the conversation
	// CountsOn says that what a call took that was cut off is in the usage of a later answer.
	CountsOn bool `json:"counts_on,omitempty"`
	// Others are the models that may answer in its place.
	Others []vfs.ModelName `json:"others,omitempty"`
	// Abilities are those of the way in which it is asked, not of a single model.
	Abilities Abilities `json:"abilities,omitzero"`
}

// ModelInfo is offered by the files of /dev/llm: what the kernel wants to know before the first
// prompt.
type ModelInfo interface {
	vfs.VFSFile
	Info() DriverInfo
}

// RateLimit is in the error chain of RATE_LIMITED errors.
type RateLimit struct {
	RetryAfter time.Duration // how long the provider asks to wait; 0 = it did not say
	Message    string
	// Account says that the limit is of all models that are asked with the key; else it is taken to be of the one that was asked.
	Account bool
}

// RetryIn returns how long the provider asks to wait; 0 = it did not say. The kernel looks for it in the
// chain of an error, to know when a process can go on.
func (r *RateLimit) RetryIn() time.Duration { return r.RetryAfter }

// Error says how long to wait.
func (r *RateLimit) Error() string {
	if r.RetryAfter > 0 {
		return r.Message + " (retry after " + r.RetryAfter.String() + ")"
	}
	return r.Message
}
