package confine

import (
	"cmp"

	"golang.org/x/sys/unix"

	"rnix/internal/event"
	"rnix/internal/proc"
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
	r.tell(c, "", refused, protected)
}

// tell is Tell for a command, or for what else a process has; by names that.
func (r *Refusals) tell(c vfs.Caller, by string, refused []sandbox.Refusal, protected []string) {
	before := ""
	if by != "" {
		before = by + ": "
	}
	for _, path := range protected {
		r.Events.Append(event.Event{Kind: event.Refused, PID: c.PID, UUID: c.UUID, Name: changed, Path: path,
			Text: path + " is protected, and " + cmp.Or(by, "a command") + " has changed it, which this sandbox cannot prevent: look at it before anything uses it"})
	}
	for _, e := range refused {
		r.Events.Append(event.Event{Kind: event.Refused, PID: c.PID, UUID: c.UUID, Name: string(e.Wanted), Path: e.Target, Text: before + e.Notice()})
	}
}

// heeded has a box of a process's agent CLI or MCP server, which by names, tell what the sandbox did not let that do, and what it could not prevent. It runs for
// long and does many things, so its exit status says nothing of them, nor does where it was started say where it works.
func (r *Refusals) heeded(box *proc.Box, c vfs.Caller, by string) {
	if r.Events == nil || c.PID == 0 || box.Plan.Rung == sandbox.RungNone {
		return
	}
	plan := box.Plan
	box.Ended = func(exit proc.ExitInfo, said string) {
		refused := sandbox.Besides(plan.Refused(sandbox.Outcome{Code: max(1, exit.Code), Output: said, Reads: readable}, sandbox.Disk{}), exit.Refused)
		r.tell(c, by, refused, exit.Changed)
	}
}

// readable reports whether the user may read a path.
func readable(path string) bool { return unix.Access(path, unix.R_OK) == nil }
