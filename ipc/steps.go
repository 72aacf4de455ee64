package ipc

import (
	"rnix/internal/step"
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
	PID         types.PID         `json:"pid"`
	UUID        types.UUID        `json:"uuid"`
	Steps       []step.StepRecord `json:"steps"`
	Interrupted []step.Intent     `json:"interrupted,omitempty"`
	// Open is the answer of a step that has not ended; it is paid for. A page has it that reaches the end.
	Open   *step.Answer `json:"open,omitempty"`
	Damage string       `json:"damage,omitempty"`
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
	PID  types.PID       `json:"pid"`
	UUID types.UUID      `json:"uuid"`
	Step step.StepRecord `json:"step"`
}
