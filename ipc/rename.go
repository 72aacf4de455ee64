package ipc

import "rnix/types"

// Rename gives a process another name.
var Rename = Method[RenameRequest, RenameResponse]{Name: "rename", Doc: "rename gives a process another name, durably, wherever it lies"}

// RenameRequest says how a process is to be called.
type RenameRequest struct {
	Target string `json:"target"`
	Name   string `json:"name"` // empty takes the name away
}

// RenameResponse is the process with the name that it has now, and the one that it had.
type RenameResponse struct {
	PID  types.PID  `json:"pid"`
	UUID types.UUID `json:"uuid"`
	Name string     `json:"name"`
	Was  string     `json:"was"`
	// Warnings say which other process has the name, too.
	Warnings []string `json:"warnings,omitempty"`
}
