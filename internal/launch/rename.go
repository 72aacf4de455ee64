package launch

import (
	"context"
	"errors"

	"rnix/internal/step"
	"rnix/types"
)

// Rename writes a name into the record of a history that does not run, and then where lists find it. CONFLICT: somebody else writes the
// history at this moment, or it runs.
func (h *Stored) Rename(ctx context.Context, id types.UUID, pid types.PID, name string) (was string, err error) {
	leave, err := h.Ground.Hold(id)
	if err != nil {
		return "", err
	}
	defer leave()
	rec, state, _, _, err := h.Store.Open(ctx, id)
	if err != nil {
		return "", err
	}
	shut := func() {} // of what is opened for it and stays as it was
	defer func() {
		failed := err != nil
		if err = errors.Join(err, rec.Close()); failed {
			shut()
		}
	}()
	old, err := h.WasOf(state, id)
	if err != nil || old.Name == name {
		return old.Name, err
	}
	info, known := h.Cards.Index().Get(id)
	if known {
		info = *h.Cards.Whole(&info)
	}
	undo, err := h.Cards.Reopen(id, func(over *step.ProcInfo) { over.State = types.StateZombie })
	if err != nil {
		return old.Name, err
	}
	if info.Over() {
		shut = func() {
			undo()
			h.Cards.Bury(context.WithoutCancel(ctx), info) // an error does not say that nothing was written
		}
	}
	if err := rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerName, Text: name}}); err != nil {
		return "", err
	}
	if err := rec.Commit(); err != nil {
		return "", err
	}
	if !h.Kernel.Renamed(pid, id, name) && known {
		rec.State().PutSet(&info)
		h.Cards.Put(&info)
	}
	return old.Name, nil
}
