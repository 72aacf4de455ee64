package launch

import (
	"context"
	rnixctx "rnix/context"
	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
	"time"
)

// Copy makes the history of a fork and opens it.
func (h *Stored) Copy(ctx context.Context, origin types.UUID, cut *recovery.State, at int) (*Opened, error) {
	id := types.NewUUID()
	lease, err := h.Store.Acquire(ctx, id)
	if err != nil {
		return nil, err
	}
	var state *recovery.State
	damage := ""
	if was, werr := cut.Was(); werr == nil { // before its records: one that is whole has its inputs
		damage, err = h.Cards.Journal.Blobs().CopyInputs(origin, id, was.Inputs)
	}
	if err == nil {
		lease, err = step.Fork(ctx, h.Cards.Journal, id, lease, origin, cut.Seq, at)
	}
	if err == nil {
		var as []rnixctx.Attachment
		if as, err = step.Attachments(h.Cards.Journal.Replay(ctx, origin, 1), cut.Seq); err == nil {
			err = h.Cards.Journal.Blobs().CopyAttachments(origin, id, as)
		}
	}
	if err == nil {
		_ = h.Cards.Journal.Blobs().CopySeen(origin, id, cut.Time) // without it files have to be read again
	}
	if err == nil {
		state, _, _, err = recovery.Read(h.Store.Source(ctx, id), nil)
	}
	a := &Opened{State: state, From: "history", Fork: true, Damage: damage}
	if err == nil {
		a.Was, err = h.WasOf(state, origin)
	}
	if err != nil {
		_ = h.Cards.Journal.Release(context.WithoutCancel(ctx), id, lease.Epoch)
		_ = h.Store.Discard(id) // err matters more
		return nil, err
	}
	a.Rec = records.NewRecorder(h.Store, id, lease, state.Clone())
	a.AsForked()
	step.Forked(&a.State.Life)
	a.State.Born()
	return a, nil
}

// AsForked makes what the origin was started with that of a process of its own.
func (a *Opened) AsForked() {
	a.Was.CreatedAt, a.Was.ParentUUID, a.Was.Name = time.Now(), types.UUID{}, ""
}
