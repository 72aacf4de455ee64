package launch

import (
	"context"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// Dismiss ends a suspended history, and the suspended ones below it, without running them. CONFLICT: it is running, or
// somebody is at it.
func (h *Stored) Dismiss(ctx context.Context, id types.UUID, reason string) error {
	if pid, alive := h.Running(id); alive {
		return types.Errorf(types.ErrConflict, "Dismiss", id.String(), "it is running as PID %d", pid)
	}
	info, ok := h.Cards.Journal.Index().Get(id)
	switch {
	case !ok:
		return types.Errorf(types.ErrNotFound, "Dismiss", id.String(), "there is no such history")
	case info.Exit != nil && !info.Suspended:
		return nil
	}
	for _, below := range h.Cards.Journal.Index().Open() {
		if below.ParentUUID != id || below.UUID == id {
			continue
		}
		if _, alive := h.Running(below.UUID); alive {
			continue // it goes on without a parent
		}
		if err := h.Dismiss(ctx, below.UUID, reason); err != nil && types.CodeOf(err) != types.ErrNotFound {
			return err
		}
	}
	return h.End(ctx, &info, types.ExitStatus{Code: types.ExitCancelled, Reason: reason})
}

// End writes the end of a history that is not running.
func (h *Stored) End(ctx context.Context, info *step.ProcInfo, exit types.ExitStatus) error {
	a, err := h.Open(ctx, info.UUID)
	if err != nil {
		return err
	}
	err = a.Rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerExit, PID: info.PID, Exit: &exit}})
	if err == nil {
		err = a.Rec.Commit()
	}
	a.Close()
	if err != nil {
		return err
	}
	h.Cards.Bury(ctx, *info)
	h.Store.Ended(info.UUID)
	return nil
}

// Pause pauses a history, and nothing if it has ended or never begun. One that somebody lets go on in this moment is paused where it lives.
func (h *Stored) Pause(ctx context.Context, id types.UUID) error {
	info, ok := h.Cards.Journal.Index().Get(id)
	if !ok || info.Exit != nil && !info.Suspended {
		return nil
	}
	a, err := h.Open(ctx, id)
	if pid, alive := h.Running(id); alive && types.CodeOf(err) == types.ErrConflict {
		_, err = h.Kernel.SignalTree(pid, types.SIGPAUSE)
		if types.CodeOf(err) == types.ErrNotFound {
			return nil
		}
		return err
	}
	if err != nil {
		return err
	}
	defer a.Close()
	if a.State.Phase == recovery.Ended {
		return nil
	}
	write := func() error { return a.Rec.Pause(info.PID) }
	if a.State.Paused { // by who may have been killed before it was synced
		write = func() error { return h.Cards.Journal.Sync(id) }
		if !info.PausedAt.IsZero() {
			return write()
		}
	}
	return h.Set(ctx, a, write, func(shown *step.ProcInfo) { *shown = h.Cards.Refreshed(*shown, a.Rec.State()) })
}

// Set writes what is set of an opened history by write, durably, and has lists show it by show. If the daemon breaks off in between, its next start shows
// it. After an error the history is closed.
func (h *Stored) Set(ctx context.Context, a *Opened, write func() error, show func(info *step.ProcInfo)) error {
	info, known := h.Cards.Index().Get(a.Rec.ID)
	if known {
		info = *h.Cards.Whole(&info)
	}
	undo, err := h.Cards.Reopen(a.Rec.ID, func(over *step.ProcInfo) { over.State = types.StateZombie })
	if err != nil {
		return err
	}
	if err := write(); err != nil {
		a.Close()
		if undo(); info.Over() {
			h.Cards.Bury(context.WithoutCancel(ctx), info) // an error does not say that nothing was written
		}
		return err
	}
	if known {
		show(&info)
		h.Cards.Put(&info)
	}
	return nil
}
