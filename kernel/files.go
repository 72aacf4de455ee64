package kernel

import (
	"context"
	"time"

	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// snapshots is what a process knows of the snapshots of its workspace. It is exclusive to the process's
// goroutine.
type snapshots struct {
	last  *step.Snapshot // the latest one; nil = none yet
	first bool           // it is the first one, and nothing that is recorded names it
	dirty bool           // files may have changed since
	ended int            // the last step that has ended
}

// snapshotTime bounds one snapshot: the work of an agent must not wait for the disk for ever.
const snapshotTime = time.Minute

// keepBefore takes a snapshot before the first call that can change files, and before one that could be
// taken back when others came before it in the same step. A call that is to be taken back now has its
// snapshot: the files may be as it has left them.
func (h host) keepBefore(n int, actions []loop.Action) {
	f := &h.p.files
	for i := range actions {
		a := &actions[i]
		if !effective(a) || effectOf(a) == vfs.EffectNone {
			continue
		}
		if a.Undo {
			return
		}
		if f.last == nil {
			h.keep(n - 1)
			f.first = f.last != nil
		} else if f.dirty && effectOf(a) == vfs.EffectReversible {
			h.keep(n)
		}
		return
	}
}

// keepFirst takes the first snapshot before a model is asked that may change files while it answers: what it
// has called it tells only afterwards, and not always.
func keepFirst(h host) {
	f := &h.p.files
	if !h.p.model.Acts {
		return
	}
	if f.last == nil {
		h.keep(f.ended)
		f.first = f.last != nil
	}
	f.dirty = true
}

// touched notes that calls have run which may have changed files.
func (h host) touched(actions []loop.Action) {
	for i := range actions {
		if a := &actions[i]; (effective(a) || a.Elsewhere()) && effectOf(a) != vfs.EffectNone {
			h.p.files.dirty = true
		}
	}
}

// keepAfter takes a snapshot at the end of a step that may have changed files, and returns it if it has.
func (h host) keepAfter(n int) *step.Snapshot {
	if !h.p.files.dirty {
		return nil
	}
	if s, changed := h.keep(n); changed {
		return s
	}
	return nil
}

// keep takes a snapshot. One that fails costs the way back to this step and nothing else, so it is only
// reported.
func (h host) keep(n int) (_ *step.Snapshot, changed bool) {
	if h.k.cfg.Snapshot == nil {
		return nil, false
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.p.ctx), snapshotTime)
	defer cancel()
	start := time.Now()
	s, changed, err := h.k.cfg.Snapshot(ctx, h.p, n)
	if err != nil {
		h.k.log.Warn("snapshot", "pid", h.p.PID, "uuid", h.p.UUID, "step", n, "err", err)
		h.Emit(event.Event{Kind: event.Snapshot, Step: n, Err: err.Error(), Dur: time.Since(start)})
		return nil, false
	}
	if s == nil {
		h.p.files.dirty = false
		return nil, false
	}
	if changed {
		h.Emit(event.Event{Kind: event.Snapshot, Step: n, Name: s.Kind, Text: s.ID, Dur: time.Since(start)})
	}
	h.p.files.last, h.p.files.dirty = s, false
	return s, changed
}

// Undo implements loop.Host.
func (h host) Undo(ctx context.Context, c *recovery.Call) error {
	if err := h.k.cfg.Undo(ctx, h.p, c.Intent); err != nil {
		return types.Errorf(types.ErrStorage, "Undo", c.Name, "%w", err)
	}
	return nil
}
