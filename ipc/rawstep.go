package ipc

import (
	"encoding/json"

	"rnix/types"
)

// RawStep shows the request of a step as it went to the vendor.
var RawStep = Method[RawStepRequest, RawStepResponse]{Name: "raw_step", Doc: "raw_step makes the request of a step anew, of the record and by the driver, as it goes to the vendor, and returns it with the answer as it is on record; secrets are concealed"}

// RawStepRequest names one step. The configuration of Cwd and Env says how the provider is asked.
type RawStepRequest struct {
	ProjectRequest
	Target string `json:"target"`
	Step   int    `json:"step"`
}

// RawStepResponse is a request and its answer.
type RawStepResponse struct {
	PID      types.PID  `json:"pid"`
	UUID     types.UUID `json:"uuid"`
	Step     int        `json:"step"`
	Provider string     `json:"provider"`
	Model    string     `json:"model,omitempty"`
	Address  string     `json:"address"` // to which the driver posts it
	// Request is the body, made anew: no record has the bytes that were sent. Notes say in what it may differ.
	Request json.RawMessage `json:"request"`
	Answer  RawAnswer       `json:"answer"`
	Notes   []string        `json:"notes"`
}

// RawAnswer is an answer as it is on record, in the words of this program.
type RawAnswer struct {
	Answer  StepAnswer      `json:"usage"`
	Message json.RawMessage `json:"message"` // with its calls and what the vendor wants back, such as encrypted thoughts
}
