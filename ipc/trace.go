package ipc

import (
	"time"

	"rnix/internal/trace"
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
	Root  types.UUID   `json:"root"`
	PID   types.PID    `json:"pid"`
	Start time.Time    `json:"start"` // of the root
	End   time.Time    `json:"end"`   // of what ended last, which may be later than the root
	Live  bool         `json:"live"`  // the root runs, or is paused
	Spans []trace.Span `json:"spans"` // a parent before its children, those by their start
	// Critical is the chain that decided when the root ended. It adds up to the time that the root ran; what
	// lies between two of its runs is left out. What a span decided that is cut stands with the one that it was in.
	Critical []trace.Part  `json:"critical"`
	Blame    []trace.Blame `json:"blame"` // from the root down to what made it fail; empty = it has not failed
	Cut      int           `json:"cut"`   // spans that are left out
	// Withheld counts texts that were asked for and left out, since all together would be too many.
	Withheld int `json:"withheld,omitempty"`
	// Missing are processes below the root whose histories are archived or could not be read, each with why, at most
	// some 20; and that there are too many.
	Missing []string `json:"missing,omitempty"`
}
