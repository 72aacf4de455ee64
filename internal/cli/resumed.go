package cli

import (
	"fmt"
	"slices"
	"strings"

	"rnix/ipc"
	"rnix/types"
)

// showResumed says what goes on, from where, and what becomes of its calls in doubt. followed says that
// the events of the process are shown behind.
func showResumed(out *output, r *ipc.ResumeResponse, followed bool) {
	short := shortIDs(r.UUID, r.OriginUUID)
	arrow, dots := " → ", "…"
	if out.ascii {
		arrow, dots = " -> ", "..."
	}
	model := modelName(r.Provider, r.Model)
	switch r.Mode {
	case "live":
		if !followed { // its first event says the same
			out.talk("[kernel] PID %d resumed", r.PID)
		}
	case "fork":
		out.talk("[kernel] forking from %s%snew UUID %s...", short(r.OriginUUID)+dots, arrow, short(r.UUID))
		out.talk("[kernel] PID %d spawned (%s) | forked from %s at step %d | works in %s", r.PID, model, short(r.OriginUUID)+dots, r.Step, oneLine(r.WorkDir))
		if r.LeftOut > 0 {
			out.talk("[kernel] step %d had not ended: its %s left out, and the fork is told what they were", r.Step+1, callsAre(r.LeftOut))
		}
	default:
		out.talk("[kernel] resuming UUID %s from %s (step %s)...", short(r.UUID)+dots, oneLine(r.From), stepOf(r.Step, r.MaxSteps))
		out.talk("[kernel] PID %d spawned (%s) | resumed from %s", r.PID, model, short(r.UUID)+dots)
	}
	if !followed && r.Mode != "live" {
		out.detail("[kernel] UUID %s; provider: %s", r.UUID, oneLine(r.Why))
	}
	for i := range r.InDoubt {
		d := &r.InDoubt[i]
		out.talk("[kernel] call %s of %s in step %d: %s", oneLine(d.CallID), oneLine(d.Tool), d.Step, becomes(d))
		out.detail("[kernel]   %s", cut(oneLine(d.Input), 200))
	}
	if len(r.Woken) > 0 {
		out.talk("[kernel] resumed with it: %s", namedPIDs(r.Woken))
	}
	for _, p := range r.Still {
		out.warn(fmt.Sprintf("PID %d stays suspended: %s", p.PID, oneLine(p.Why)))
	}
	if len(r.Paused) > 0 {
		out.talk("[kernel] below it %s paused: %s; resume them all with: rnix resume --subtree %d", stay(len(r.Paused)), namedPIDs(r.Paused), r.PID)
	}
	for _, text := range r.Warnings {
		out.warn(text)
	}
}

// callsAre is "call is", or "5 calls are".
func callsAre(n int) string {
	if n == 1 {
		return "call is"
	}
	return fmt.Sprintf("%d calls are", n)
}

// becomes says what becomes of a call whose outcome nobody knows.
func becomes(d *ipc.InDoubt) string {
	switch d.Verdict {
	case "again":
		if d.Effect == "none" || d.Effect == "idempotent" {
			return "interrupted, it is run again, which does no harm"
		}
		return "outcome unknown, it is run again"
	case "undo":
		return "interrupted, its files are put back as they were and it is run again"
	case "attach":
		return "interrupted, the process that it starts is found again, or started"
	case "unknown":
		return "outcome unknown, the model is told to check"
	case "skipped":
		return "outcome unknown, it is not run and the model is told so"
	}
	return "outcome unknown: " + oneLine(d.Verdict)
}

// shortest is how much of a UUID is shown at least: its time, without which two of one day look alike.
const shortest = 13

// shortIDs returns what renders a UUID as a beginning of it that tells it from the others in ids.
func shortIDs(ids ...types.UUID) func(types.UUID) string {
	texts := make([]string, len(ids))
	for i, id := range ids {
		texts[i] = id.String()
	}
	slices.Sort(texts)
	texts = slices.Compact(texts)
	return func(id types.UUID) string {
		s, n := id.String(), shortest
		at, _ := slices.BinarySearch(texts, s)
		for _, i := range []int{at - 1, at + 1} { // the others are less like it
			for i >= 0 && i < len(texts) && n < len(s) && strings.HasPrefix(texts[i], s[:n]) {
				n++
			}
		}
		return s[:n]
	}
}

// namedPIDs names some processes.
func namedPIDs(pids []types.PID) string {
	all := make([]string, len(pids))
	for i, pid := range pids {
		all[i] = "PID " + pid.String()
	}
	return strings.Join(all, ", ")
}

// stay is the verb of so many that stay.
func stay(n int) string {
	if n == 1 {
		return "stays"
	}
	return "stay"
}
