package daemon

import (
	"context"

	"rnix/internal/step"
	"rnix/types"
)

// dismiss ends a suspended history, and the suspended ones below it, without running them. CONFLICT: it is running, or
// somebody is at it.
func (d autoResumer) dismiss(ctx context.Context, id types.UUID, reason string) error {
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
	a, err := reviver{d.Daemon}.open(ctx, id)
	if err != nil {
		return err
	}
	exit := types.ExitStatus{Code: types.ExitCancelled, Reason: reason}
	err = a.rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerExit, PID: info.PID, Exit: &exit}})
	if err == nil {
		err = a.rec.Commit()
	}
	a.close()
	if err != nil {
		return err
	}
	d.bury(ctx, info)
	d.store.Ended(id)
	return nil
}
