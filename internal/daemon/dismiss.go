package daemon

import (
	"context"
	"slices"

	"rnix/internal/compose/run"
	"rnix/internal/recovery"
	"rnix/internal/service/flows"
	"rnix/internal/step"
	"rnix/types"
)

// undertaker ends and pauses histories that are not running.
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

// pause pauses a history, and nothing if it has ended or never begun. One that somebody lets go on in this moment is paused where it lives.
func (d undertaker) pause(ctx context.Context, id types.UUID) error {
	info, ok := d.journal.Index().Get(id)
	if !ok || info.Exit != nil && !info.Suspended {
		return nil
	}
	a, err := reviver(d).open(ctx, id)
	if pid, alive := d.running(id); alive && types.CodeOf(err) == types.ErrConflict {
		_, err = d.kernel.SignalTree(pid, types.SIGPAUSE)
		if types.CodeOf(err) == types.ErrNotFound {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	defer a.close()
	if a.state.Phase == recovery.Ended || a.state.Paused {
		return nil
	}
	if err := a.rec.Pause(info.PID); err != nil {
		return err
	}
	a.state.Paused = true
	info = autoResumer(d).refreshed(ctx, info, a.state)
	d.put(&info)
	return nil
}

// escaped ends a child of a supervisor that was killed, or a node of a run that was ended, if the daemon was killed before the child could be
// ended. It reports whether the history was one.
func (d undertaker) escaped(ctx context.Context, info *step.ProcInfo) bool {
	up, ok := d.journal.Index().Get(info.ParentUUID)
	if !ok || !slices.Contains(d.flows.Left(ctx, &up), info.UUID) {
		return false
	}
	isNode, reason, what := up.Kind == run.Kind, "terminated: its supervisor has ended", "supervisor has ended"
	if isNode {
		reason, what = run.ReasonEnded, "run was ended"
	}
	if err := d.dismiss(ctx, info.UUID, reason); err != nil {
		d.note("PID %d (%s) cannot be ended, and its %s: %v", info.PID, info.UUID, what, err)
	} else if !isNode {
		d.note("PID %d (%s) is ended, as its supervisor was", info.PID, info.UUID)
	}
	return true
}

// endsRun brings a run to its end that was ending when the daemon was killed, with its nodes. It reports whether
// the history is one.
func (d undertaker) endsRun(ctx context.Context, info *step.ProcInfo, state *recovery.State) bool {
	if info.Kind != run.Kind || state.Phase == recovery.Ended {
		return false
	}
	exit, nodes, ending := flows.Ending(state)
	if !ending {
		return false
	}
	for _, id := range nodes {
		if err := d.dismiss(ctx, id, run.ReasonEnded); err != nil && types.CodeOf(err) != types.ErrNotFound {
			d.note("%s, a node of PID %d (%s), which was ending, cannot be ended: %v", id, info.PID, info.UUID, err)
		}
	}
	if err := d.endOnDisk(ctx, info, exit); err != nil {
		d.note("PID %d (%s) was ending, and cannot be ended: %v", info.PID, info.UUID, err)
		return true
	}
	d.note("PID %d (%s) was ending when the daemon ended, and is ended with its nodes", info.PID, info.UUID)
	return true
}
