package confine

import (
	"rnix/internal/event"
	"rnix/internal/sandbox"
	"rnix/vfs"
)

// changed is the Name of the event that says that a command has changed what is protected.
const changed = "changed"

// Refusals tells what was refused.
type Refusals struct {
	Events *event.Log
}

// Tell is what shell.Options.Refused asks for: what the sandbox did not let a command do, and what it could not prevent, is an event of the
// process. It is told once, when the command has ended: a step that is replayed runs no command.
func (r *Refusals) Tell(c vfs.Caller, refused []sandbox.Refusal, protected []string) {
	for _, path := range protected {
		r.Events.Append(event.Event{Kind: event.Refused, PID: c.PID, UUID: c.UUID, Name: changed, Path: path,
			Text: path + " is protected, and a command has changed it, which this sandbox cannot prevent: look at it before anything uses it"})
	}
	for _, e := range refused {
		r.Events.Append(event.Event{Kind: event.Refused, PID: c.PID, UUID: c.UUID, Name: string(e.Wanted), Path: e.Target, Text: e.Notice()})
	}
}
