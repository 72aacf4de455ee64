package ipc

import "rnix/types"

// Compact has the conversation of a process compacted.
var Compact = Method[CompactRequest, CompactResponse]{Name: "compact", Doc: "compact has the conversation of a process summed up by its model before its next question, wherever the process lies; the wish is durable"}

// CompactRequest says which conversation is to be compacted.
type CompactRequest struct {
	Target string `json:"target"`
	Focus  string `json:"focus"` // what is to be kept above all, in words of at most 10,000 bytes; may be empty
}

// CompactResponse is the process. Running says that it goes on, so that it happens before its next question; else it does when the process is resumed.
type CompactResponse struct {
	PID     types.PID  `json:"pid"`
	UUID    types.UUID `json:"uuid"`
	Running bool       `json:"running"`
}
