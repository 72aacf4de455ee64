package ipc

import (
	"encoding/json"
	"time"

	"rnix/types"
)

// How many steps are in an answer of list_steps that is asked for a page.
const (
	PageSteps    = 100
	MaxPageSteps = 1000
	// FindSpan is how many steps an answer of list_steps looks at with Find.
	FindSpan = 5000
)

// StepsRequest selects steps of a process. With its target alone, all of them come at once, as long as that may be; with anything
// else it is a page, which costs no more in a long history than in a short one.
type StepsRequest struct {
	Target string `json:"target"`
	After  int    `json:"after,omitempty"`  // only steps with higher numbers
	Before int    `json:"before,omitempty"` // only steps with lower numbers; 0 = to the last
	Limit  int    `json:"limit,omitempty"`  // 0 = PageSteps; at most MaxPageSteps
	Last   bool   `json:"last,omitempty"`   // of those that there are the last ones, else the first ones
	Bare   bool   `json:"bare,omitempty"`   // without answers, and without inputs and results of calls
	// Find picks the steps that have a text, in their line, answer, calls, inputs, results and errors; small letters find capital
	// ones too. An answer has looked at FindSpan steps or as many as it took for a page; next and prev say where to go on.
	Find string `json:"find,omitempty"`
}

// Page reports whether a part is asked for.
func (r *StepsRequest) Page() bool { return *r != StepsRequest{Target: r.Target} }

// ListStepsResponse is the steps of a process.
type ListStepsResponse struct {
	PID         types.PID    `json:"pid"`
	UUID        types.UUID   `json:"uuid"`
	Steps       []StepRecord `json:"steps"`
	Interrupted []CallIntent `json:"interrupted,omitempty"`
	// Open is the answer of a step that has not ended; it is paid for. A page has it that reaches the end.
	Open   *StepAnswer `json:"open,omitempty"`
	Damage string      `json:"damage,omitempty"`
	// Of a page, in which a step that was run twice is there once, as it was the second time:
	First int `json:"first,omitempty"` // number of the first step that there is
	Last  int `json:"last,omitempty"`  // and of the last one
	Next  int `json:"next,omitempty"`  // the after of what comes behind; 0 = nothing does
	Prev  int `json:"prev,omitempty"`  // the before of what was earlier; 0 = nothing was
}

// StepRequest names one step.
type StepRequest struct {
	Target string `json:"target"`
	Step   int    `json:"step"`
	Alone  bool   `json:"alone,omitempty"` // without its messages, which costs much less in a long history
}

// StepDetail is one step, with Messages filled in unless it was asked for alone.
type StepDetail struct {
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	Step StepRecord `json:"step"`
}

// StepRecord is one iteration of the reasoning loop.
type StepRecord struct {
	StepNumber   int           `json:"step_number"`
	Timestamp    time.Time     `json:"timestamp"` // start of the step
	Messages     []StepMessage `json:"messages,omitempty"`
	MessageCount int           `json:"message_count"`
	TokensUsed   int           `json:"tokens_used"`
	RawResponse  string        `json:"raw_response,omitempty"`
	Action       string        `json:"action"` // tool_call, plan, spawn, complete, specialize, replan, text
	Summary      string        `json:"summary"`
	ToolPath     string        `json:"tool_path,omitempty"`
	ToolInput    string        `json:"tool_input,omitempty"`
	ToolResult   string        `json:"tool_result,omitempty"`
	ToolError    string        `json:"tool_error,omitempty"`

	// ToolCalls has every call of the step; the four Tool fields above are its first entry.
	ToolCalls []StepCall `json:"tool_calls,omitempty"`
	// FailedCalls is how many of them failed: with an error, or as commands that did not end with exit code 0.
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
	Metered     bool          `json:"metered,omitempty"`   // likewise
	Error       string        `json:"error,omitempty"`     // why the step failed, if it did
	// Files is the snapshot of the workspace after the step, if it may have changed files.
	Files *FilesSnapshot `json:"files,omitempty"`
	// End is how the run ends that this step has ended; nil = it goes on.
	End *StepEnding `json:"end,omitempty"`
}

// Unpriced is how many tokens of the step have a cost that is not known.
func (s *StepRecord) Unpriced() int {
	if s.CostFrom != "" || s.CostUSD > 0 {
		return 0
	}
	return s.TokensUsed
}

// StepEnding is the end of a run by an answer of its model.
type StepEnding struct {
	Exit   types.ExitStatus `json:"exit"`
	Result string           `json:"result,omitempty"`
}

// StepCall is one tool call of a step.
type StepCall struct {
	ID       string        `json:"id"`
	Name     string        `json:"name"`
	Path     string        `json:"path"`
	Input    string        `json:"input,omitempty"`
	Result   string        `json:"result,omitempty"`
	Error    string        `json:"error,omitempty"`
	Code     types.ErrCode `json:"code,omitempty"`
	Duration time.Duration `json:"duration_ns"`
	// Failure says how a command failed that has answered: exit 1.
	Failure string `json:"failure,omitempty"`
}

// StepMessage is a message of the prompt of a step.
type StepMessage struct {
	Role       string            `json:"role"`
	Content    string            `json:"content"`
	ToolCallID string            `json:"tool_call_id,omitempty"` // role tool: which call this answers
	IsError    bool              `json:"is_error,omitempty"`     // role tool: the call failed
	ToolCalls  []StepMessageCall `json:"tool_calls,omitempty"`   // role assistant
	Reasoning  []StepBlock       `json:"reasoning,omitempty"`    // role assistant: given back to the provider unchanged
	// Attachments are images and PDFs that the model was shown with it; Content names them.
	Attachments []Attached `json:"attachments,omitempty"`
}

// Attached is an image or a PDF of a message. Its bytes lie in the history's directory, at attachments/<sha256>.
type Attached struct {
	Name   string `json:"name"`
	Media  string `json:"media"` // such as image/png
	SHA256 string `json:"sha256"`
	Bytes  int64  `json:"bytes"`
	Width  int    `json:"width,omitempty"` // in pixels, of an image
	Height int    `json:"height,omitempty"`
	Pages  int    `json:"pages,omitempty"` // of a PDF; 0 = not known
}

// StepMessageCall is a call that a model has asked for.
type StepMessageCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // as the model wrote it; valid JSON, or a JSON string that holds what it wrote
	// ParseError says why the arguments could not be read; such a call is answered, not run.
	ParseError string `json:"parse_error,omitempty"`
}

// StepBlock is a piece of a provider's answer that is sent back as it came.
type StepBlock struct {
	Provider string          `json:"provider"`
	Data     json.RawMessage `json:"data"`
}

// StepAnswer is what is known of a model's answer before its step has ended: what it cost, and which step it belongs to.
type StepAnswer struct {
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
	// Metered says that the tokens are those of requests of its programs, each of which has counted by itself.
	Metered bool `json:"metered,omitempty"`
}

// CallIntent is a tool call that was about to run.
type CallIntent struct {
	Step   int             `json:"step"`
	CallID string          `json:"call_id"`
	Tool   string          `json:"tool"`
	Path   string          `json:"path"`
	Input  json.RawMessage `json:"input,omitempty"`
	Effect string          `json:"effect"` // vfs.Effect
	// Child is the UUID of the process that a spawn call is about to start, so that it is found again
	// and never started twice.
	Child *types.UUID `json:"child,omitempty"`
	// Background says that the call does not wait for the Child.
	Background bool `json:"background,omitempty"`
	// Key names what the call is: the same for the same call of the same answer, in every run.
	Key string `json:"key,omitempty"`
	// Before is the snapshot of the workspace that can take the call back.
	Before *FilesSnapshot `json:"before,omitempty"`
}

// FilesSnapshot names the files of a workspace as they were at one moment.
type FilesSnapshot struct {
	Step int    `json:"step"` // under which step they are kept
	Kind string `json:"kind"` // git or copy
	ID   string `json:"id"`
	Root string `json:"root"` // the directory that was kept; the workspace, or one above it
	// Limited says what was left out, and why; empty = it is complete.
	Limited string `json:"limited,omitempty"`
}
