package ipc

import (
	"rnix/internal/step"
	"rnix/types"
)

// The method of this file.
var ContextProfile = Method[ContextRequest, ContextResponse]{Name: "context_profile",
	Doc: "context_profile says what fills the context of a process, how it grew, how much room is left and what a prompt cache can use again"}

// ContextRequest asks what fills the context of a process, alive or dead.
type ContextRequest struct {
	Target string `json:"target"`
	Step   int    `json:"step,omitempty"` // the prompt of this step; 0 = what the next one has
	// Largest is how many of the largest messages are shown, with how they begin; 0 = 20, at most 1000.
	Largest int `json:"largest,omitempty"`
	// Segments asks for all messages; without it Segments is empty.
	Segments bool `json:"segments,omitempty"`
}

// ContextResponse is the profile, as in ctx-profile.json. Its lists are never null.
type ContextResponse struct {
	PID    types.PID `json:"pid"`
	Live   bool      `json:"live"`             // it runs, or is paused
	Damage string    `json:"damage,omitempty"` // why its record could not be read to the end
	step.Profile
	Largest []step.Segment `json:"largest"` // of the prompt that is shown, the largest first
}
