package daemon

import (
	"context"
	"slices"
	"time"

	"rnix/internal/compose/run"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// undertaker ends histories that are not running.
type undertaker struct{ *Daemon }

// dismiss ends a suspended history, and the suspended ones below it, without running them. CONFLICT: it is running, or
// somebody is at it.
func (d undertaker) dismiss(ctx context.Context, id types.UUID, reason string) error {
	if pid, alive := d.running(id); alive {
		return types.Errorf(types.ErrConflict, "Dismiss", id.String(), "it is running as PID %d", pid)
	}
	info, ok := d.journal.Index().Get(id)
	switch {
	case !ok:
		return types.Errorf(types.ErrNotFound, "Dismiss", id.String(), "there is no such history")
	case info.Exit != nil && !info.Suspended:
		return nil
	}
	for _, below := range d.journal.Index().Open() {
		if below.ParentUUID != id || below.UUID == id {
			continue
		}
		if _, alive := d.running(below.UUID); alive {
			continue // it goes on without a parent
		}
		if err := d.dismiss(ctx, below.UUID, reason); err != nil && types.CodeOf(err) != types.ErrNotFound {
			return err
		}
	}
	return d.endOnDisk(ctx, &info, types.ExitStatus{Code: types.ExitCancelled, Reason: reason})
}

// endOnDisk writes the end of a history that is not running.
func (d undertaker) endOnDisk(ctx context.Context, info *step.ProcInfo, exit types.ExitStatus) error {
	a, err := reviver(d).open(ctx, info.UUID)
	if err != nil {
		return err
	}
	err = a.rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerExit, PID: info.PID, Exit: &exit}})
	if err == nil {
		err = a.rec.Commit()
	}
	a.close()
	if err != nil {
		return err
	}
	autoResumer(d).bury(ctx, *info)
	d.store.Ended(info.UUID)
	return nil
}

// escaped ends a child of a supervisor that was killed, if the daemon was, before the child could be. It reports
// whether the history was one.
func (d undertaker) escaped(ctx context.Context, info *step.ProcInfo) bool {
	up, ok := d.journal.Index().Get(info.ParentUUID)
	if ok && up.Kind == run.Kind {
		return d.leftBehind(ctx, &up, info)
	}
	if !ok || up.Kind != kernel.SupervisorKind || up.Exit == nil || up.Suspended {
		return false
	}
	state, was, err := superviser(d).stateOf(ctx, up.UUID)
	if err != nil || was.Body == nil || state.Phase != recovery.Ended {
		return false
	}
	decl, err := declaredIn(was.Body.Spec, up.UUID)
	if err != nil {
		return false
	}
	spec, err := superviser(d).plan(nil, &decl)
	if err != nil {
		return false
	}
	s, err := kernel.StoredSupervisor(spec, state, time.Now())
	if err != nil || !slices.ContainsFunc(s.Children, func(c kernel.ChildStatus) bool { return c.UUID == info.UUID }) {
		return false
	}
	if err := d.dismiss(ctx, info.UUID, "terminated: its supervisor has ended"); err != nil {
		d.note("PID %d (%s), whose supervisor has ended, cannot be ended: %v", info.PID, info.UUID, err)
		return true
	}
	d.note("PID %d (%s) is ended, as its supervisor was", info.PID, info.UUID)
	return true
}

// leftBehind is escaped for a node of a run of a workflow.
func (d undertaker) leftBehind(ctx context.Context, up, info *step.ProcInfo) bool {
	if up.Exit == nil || up.Suspended {
		return false
	}
	nodes, _, state, err := composer(d).history(ctx, up.UUID)
	if err != nil || state.Phase != recovery.Ended {
		return false
	}
	for _, id := range nodes.Live() {
		if id != info.UUID {
			continue
		}
		if err := d.dismiss(ctx, id, run.ReasonEnded); err != nil {
			d.note("PID %d (%s), whose run was ended, cannot be ended: %v", info.PID, info.UUID, err)
		}
		return true
	}
	return false
}

// endsRun brings a run to its end that was ending when the daemon was killed, with its nodes. It reports whether
// the history is one.
func (d undertaker) endsRun(ctx context.Context, info *step.ProcInfo, state *recovery.State) bool {
	if info.Kind != run.Kind || state.Phase == recovery.Ended {
		return false
	}
	nodes, spec, err := composeState(state)
	if err != nil {
		return false
	}
	e, ending := run.EndingIn(state.Notes, len(spec.Rounds))
	if !ending {
		return false
	}
	for _, id := range nodes.Live() {
		if err := d.dismiss(ctx, id, run.ReasonEnded); err != nil && types.CodeOf(err) != types.ErrNotFound {
			d.note("%s, a node of PID %d (%s), which was ending, cannot be ended: %v", id, info.PID, info.UUID, err)
		}
	}
	if err := d.endOnDisk(ctx, info, e.Exit); err != nil {
		d.note("PID %d (%s) was ending, and cannot be ended: %v", info.PID, info.UUID, err)
		return true
	}
	d.note("PID %d (%s) was ending when the daemon ended, and is ended with its nodes", info.PID, info.UUID)
	return true
}
