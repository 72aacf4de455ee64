package daemon

import (
	"context"

	"rnix/internal/recovery"
	"rnix/types"
)

// runHolder pauses runs that are on disk.
type runHolder struct{ composer }

// hold pauses a run that is on disk, and the nodes of it that are: none of them goes on when its time has come. One
// that somebody lets go on in this moment is paused where it lives.
func (d runHolder) hold(ctx context.Context, t *target) error {
	state, _, _, err := d.history(ctx, t.UUID)
	if err != nil {
		return err
	}
	ids := []types.UUID{t.UUID} // before its nodes: they do not wake it then
	for _, id := range state.Live() {
		ids = append(ids, id)
	}
	for _, id := range ids {
		if err := d.holdOne(ctx, id); err != nil {
			return err
		}
	}
	return nil
}

// holdOne pauses one history, and nothing if it has ended or never begun.
func (d runHolder) holdOne(ctx context.Context, id types.UUID) error {
	info, ok := d.journal.Index().Get(id)
	if !ok || info.Exit != nil && !info.Suspended {
		return nil
	}
	a, err := reviver{d.Daemon}.open(ctx, id)
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
	info = autoResumer{d.Daemon}.refreshed(ctx, info, a.state)
	d.put(&info)
	return nil
}
