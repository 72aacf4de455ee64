package histories

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// maxSaid bounds what a run shows of a person's words, in characters.
const maxSaid = 200

func (d *Service) lineage(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (ipc.LineageResponse, error) {
	p, err := d.past(ctx, peer, "Lineage", req.Target)
	if err != nil {
		return ipc.LineageResponse{}, err
	}
	r := ipc.LineageResponse{PID: p.PID, UUID: p.UUID, Runs: runsOf(p.h), Damage: p.h.Damage}
	if n := len(r.Runs); n > 0 {
		last := &r.Runs[n-1]
		switch {
		case p.living():
			last.ActiveMs = max(last.ActiveMs, (p.Live.Elapsed - earlier(r.Runs)).Milliseconds())
		case last.End == "": // nobody has written down that the daemon broke off
			last.End, last.Ended = step.MarkerInterrupted, p.h.Records[len(p.h.Records)-1].Time
		}
	}
	r.Family = kin{d.Index, d.Kernel, d.Archive}.family(p)
	return r, nil
}

// earlier is the time that all runs but the last one were active.
func earlier(runs []ipc.Run) (sum time.Duration) {
	for i := range runs[:len(runs)-1] {
		sum += time.Duration(runs[i].ActiveMs) * time.Millisecond
	}
	return sum
}

// forkOf returns what a history says of its origin; false if it is no fork.
func forkOf(h *step.History) (f step.ForkDetail, ok bool) {
	if len(h.Records) == 0 || h.Records[0].Marker == nil || h.Records[0].Marker.Name != step.MarkerFork {
		return f, false
	}
	err := json.Unmarshal(h.Records[0].Marker.Detail, &f)
	return f, err == nil
}

// runsOf returns the runs of a history. Those that a fork has of its origin are not its own. The last run
// has no End if none is recorded.
func runsOf(h *step.History) []ipc.Run {
	runs := []ipc.Run{}
	fork, forked := forkOf(h)
	var s recovery.State // counts the time
	var was step.Settled
	var began time.Duration // Active when the run began
	var before time.Time    // the record before
	for i := range h.Records {
		r := &h.Records[i]
		s.Apply(r)
		m, copied := r.Marker, forked && r.Seq <= fork.Records+1
		starts := m != nil && (m.Name == step.MarkerSpawn || m.Name == step.MarkerResumed)
		var last *ipc.Run
		if n := len(runs); n > 0 {
			last = &runs[n-1]
		}
		switch {
		case starts:
			if last != nil && last.End == "" {
				last.End, last.Ended = step.MarkerInterrupted, before
			}
			now := m.Settled()
			if !copied {
				began = s.Active
				runs = append(runs, begun(m, r.Time, len(runs)+1, &was, &now))
			}
			was = now
		case copied || last == nil:
		case r.Kind == step.KindStep:
			if last.FirstStep == 0 {
				last.FirstStep = r.Step.StepNumber
			}
			last.LastStep = max(last.LastStep, r.Step.StepNumber)
		case m != nil && m.Name == step.MarkerInput && last.FirstStep == 0:
			said := rnixctx.Message{Role: rnixctx.RoleUser, Content: m.Text}
			from, _ := step.Notices(&said) // what a fork is told before it
			last.Input = service.FirstLine(strings.TrimSpace(m.Text[from:]), maxSaid)
		case m != nil && last.End == "":
			finished(last, m, r.Time, before)
		}
		if n := len(runs); n > 0 && !copied {
			runs[n-1].ActiveMs = (s.Active - began).Milliseconds()
		}
		before = r.Time
	}
	return runs
}

// begun is a run at its beginning, beside what the run before was started with.
func begun(m *step.Marker, at time.Time, n int, was, now *step.Settled) ipc.Run {
	r := ipc.Run{Number: n, PID: m.PID, How: "spawn", Began: at, Provider: now.Provider, Model: cmp.Or(now.AskedModel, now.Model),
		MaxSteps: now.MaxSteps, Budget: now.ContextBudget}
	if m.Name == step.MarkerSpawn {
		return r
	}
	if r.How = "resume"; n == 1 {
		r.How = "fork"
	}
	for _, f := range []struct {
		name string
		same bool
	}{{"provider", was.Provider == now.Provider}, {"model", was.AskedModel == now.AskedModel}, {"max_steps", was.MaxSteps == now.MaxSteps},
		{"context_budget", was.ContextBudget == now.ContextBudget}} {
		if !f.same {
			r.Changed = append(r.Changed, f.name)
		}
	}
	return r
}

// finished notes the end of a run, if a marker is one. before is the time of the record before it: of a
// run that was broken off nothing later is known.
func finished(r *ipc.Run, m *step.Marker, at, before time.Time) {
	switch m.Name {
	case step.MarkerExit:
		r.Exit = m.Exit
	case step.MarkerSuspended:
		var d step.SuspendDetail
		_ = json.Unmarshal(m.Detail, &d) // it says less then
		r.Reason, r.Hint, r.WakeAt, r.Exit = m.Text, d.Hint, d.Wake, m.Exit
	case step.MarkerDaemonStop:
	case step.MarkerInterrupted:
		at = before
	default:
		return
	}
	r.End, r.Ended = m.Name, at
}

// kin knows who was forked from whom.
type kin struct {
	index   Index
	kernel  Kernel
	archive Archive
}

// family returns the processes from which a process was forked, directly or not, and everything that was
// forked from those.
func (k kin) family(p *past) []ipc.Relative {
	known := map[types.UUID]ipc.Relative{}
	forks := map[types.UUID][]types.UUID{}
	all := k.index.List()
	here := len(all)
	for _, a := range k.archive.Archived() {
		all = append(all, a.Info)
	}
	for n := range all {
		r := k.relative(&all[n])
		if n >= here {
			r.State = "archived"
		}
		if r.UUID == p.UUID {
			if f, ok := forkOf(p.h); ok {
				r.OriginUUID, r.OriginStep = f.Origin, f.Step
			}
		}
		if known[r.UUID] = r; r.OriginUUID != (types.UUID{}) {
			forks[r.OriginUUID] = append(forks[r.OriginUUID], r.UUID)
		}
	}
	root := p.UUID
	for range service.MaxAncestors {
		up := known[root].OriginUUID
		if up == (types.UUID{}) {
			break
		}
		if _, ok := known[up]; !ok {
			known[up] = k.absent(up)
		}
		root = up
	}
	var out []ipc.Relative
	seen := map[types.UUID]bool{}
	var add func(id types.UUID)
	add = func(id types.UUID) {
		if seen[id] {
			return // a circle, which only damaged files can make
		}
		seen[id] = true
		out = append(out, known[id])
		slices.SortFunc(forks[id], func(a, b types.UUID) int { return cmp.Compare(known[a].PID, known[b].PID) })
		for _, f := range forks[id] {
			add(f)
		}
	}
	add(root)
	return out
}

// relative describes a process of a family, as it is now if it lives.
func (k kin) relative(info *step.ProcInfo) ipc.Relative {
	r := ipc.Relative{UUID: info.UUID, PID: info.PID, OriginUUID: info.OriginUUID, OriginStep: info.OriginStep, Name: info.Name,
		State: procview.Stored(info).State, Step: info.Step, Runs: info.Runs, Intent: info.Intent, Model: info.Model,
		WorkDir: info.WorkDir, CreatedAt: info.CreatedAt}
	if i, ok := k.kernel.InfoOf(info.UUID); ok {
		r.PID, r.State, r.Step, r.Model, r.WorkDir = i.PID, i.StateName(), i.Step, cmp.Or(i.Model, r.Model), i.WorkDir
	}
	return r
}

// absent describes a history that is not there any more, and not archived.
func (k kin) absent(id types.UUID) ipc.Relative {
	for _, t := range k.archive.Deleted() {
		if t.UUID == id {
			return ipc.Relative{UUID: id, State: "deleted", PID: t.PID, Name: t.Name, Intent: t.Intent}
		}
	}
	return ipc.Relative{UUID: id, State: "missing"}
}
