package confine

import (
	"os"
	"strings"

	"rnix/internal/event"
	"rnix/internal/proc"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/types"
)

// What enforces a bound, in words of the wire.
const (
	byCgroup = "cgroup"
	byRlimit = "rlimit" // of each command by itself
)

// BoundsOf returns what proc.Bound asks for: what all that a process starts may use together. Of a process that is not known, it is what is usual.
func BoundsOf(s *Service) func(types.PID) types.Bounds {
	return func(pid types.PID) types.Bounds {
		_, p, err := profileOf(s.Caller, pid)
		if err != nil {
			return types.Bounds{}
		}
		return p.Sandbox.Bounds
	}
}

// Held is what proc.Bound tells: bounds have held what a process has started. It is an event of the process.
func (r *Refusals) Held(spec proc.Spec, h proc.Hits) {
	say := func(name string, n int64, h proc.Hits) {
		if n > 0 {
			r.Events.Append(event.Event{Kind: event.Refused, PID: spec.Owner, UUID: spec.OwnerUUID, Name: name, Text: strings.Join(h.Texts(), "; ")})
		}
	}
	say(event.BoundMemory, h.Killed, proc.Hits{Killed: h.Killed, Bounds: h.Bounds})
	say(event.BoundProcesses, h.Refused, proc.Hits{Refused: h.Refused, Bounds: h.Bounds})
}

// boundsBy returns the bounds of what is confined with these settings by a rung, and what enforces each.
func boundsBy(s *Service, settings sandbox.Settings, rung sandbox.Rung) []ipc.Bound {
	by, held := s.Enforced(), settings.Bounds.Held()
	memory := ipc.Bound{Name: event.BoundMemory, Value: int64(held.Memory), Text: held.Memory.String(), Asked: settings.Bounds.Asked().Memory > 0}
	tasks := ipc.Bound{Name: event.BoundProcesses, Value: int64(held.Processes), Text: held.Processes.String(), Asked: settings.Bounds.Asked().Processes > 0}
	switch {
	case memory.Value == 0:
	case by.Memory:
		memory.By = byCgroup
	default:
		memory.Why = by.Why
	}
	switch {
	case tasks.Value == 0:
	case by.Processes:
		tasks.By = byCgroup
	case tasks.Asked && rung == sandbox.RungBwrap && os.Geteuid() != 0: // the kernel does not count those of root
		tasks.By, tasks.Why = byRlimit, by.Why
	default:
		tasks.Why = by.Why
	}
	return []ipc.Bound{memory, tasks}
}

// unheld says which bounds that somebody has set are not enforced, a sentence each.
func unheld(s *Service, settings sandbox.Settings, rung sandbox.Rung) (out []string) {
	if settings.Bounds.Asked().IsZero() {
		return nil
	}
	for _, b := range boundsBy(s, settings, rung) {
		if b.Asked && b.By == "" {
			out = append(out, "sandbox."+b.Name+" is "+b.Text+", and nothing enforces it here: "+b.Why)
		}
	}
	return out
}

// Fits returns by what settings are enforced on this host, and what of them is not enforced although somebody has asked for it, or refuses those
// that cannot be.
func (s *Service) Fits(settings sandbox.Settings) (level sandbox.Level, not []string, err error) {
	if level, err = levelOf(s, settings); err != nil {
		return "", nil, err
	}
	rung := sandbox.RungNone
	if level != sandbox.LevelOff {
		rung = sandbox.Rung(level)
	}
	not = unheld(s, settings, rung)
	if len(not) > 0 && !settings.Optional {
		return "", nil, types.Errorf(types.ErrPermission, "Start", "", "%s; start the daemon where it can enforce it (see: rnix doctor), leave the limit out, or accept in your config.yaml with sandbox: {require: false} that it does not hold", strings.Join(not, "; "))
	}
	return level, not, nil
}

// boundsOf returns the bounds of a process that runs, and what enforces each.
func boundsOf(s *Service, pid types.PID, rung sandbox.Rung) []ipc.Bound {
	_, p, err := profileOf(s.Caller, pid)
	if err != nil {
		return nil
	}
	return boundsBy(s, p.Sandbox, rung)
}
