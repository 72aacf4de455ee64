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
	named *step.Snapshot // that of which the history says that it is how the files were last, see recovery.State.Files
	dirty bool           // files may have changed since the latest one
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
	}
	f.dirty = true
}

// touched notes that calls have run which may have changed files.
func touched(h host, actions []loop.Action) {
	for i := range actions {
		if a := &actions[i]; (effective(a) || a.Elsewhere()) && effectOf(a) != vfs.EffectNone {
			h.p.files.dirty = true
		}
	}
}

// keepAfter takes a snapshot at the end of a step that may have changed files. It returns the latest one, unless the history names it already: it
// may have been taken in the middle of the step, or before the daemon was killed, with nothing changed since.
func (h host) keepAfter(n int) *step.Snapshot {
	f := &h.p.files
	if f.dirty {
		h.keep(n)
	}
	if a, b := f.named, f.last; b == nil || a != nil && a.ID == b.ID && a.Kind == b.Kind && a.Root == b.Root {
		return nil
	}
	f.named = f.last
	return f.last
}

// keep takes a snapshot. One that fails costs the way back to this step and nothing else, so it is only
// reported.
func (h host) keep(n int) {
	if !h.k.cfg.Workspace.Keeps() {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(h.p.ctx), snapshotTime)
	defer cancel()
	start := time.Now()
	s, changed, err := h.k.cfg.Workspace.Snapshot(ctx, h.p, n)
	if err != nil {
		h.k.log.Warn("snapshot", "pid", h.p.PID, "uuid", h.p.UUID, "step", n, "err", err)
		h.Emit(event.Event{Kind: event.Snapshot, Step: n, Err: err.Error(), Dur: time.Since(start)})
		return
	}
	if s == nil {
		h.p.files.dirty = false
		return
	}
	if changed {
		h.Emit(event.Event{Kind: event.Snapshot, Step: n, Name: s.Kind, Text: s.ID, Dur: time.Since(start)})
	}
	h.p.files.last, h.p.files.dirty = s, false
}

// Undo implements loop.Host.
func (h host) Undo(ctx context.Context, c *recovery.Call) error {
	if err := h.k.cfg.Workspace.Undo(ctx, h.p, c.Intent); err != nil {
		return types.Errorf(types.ErrStorage, "Undo", c.Name, "%w", err)
	}
	return nil
}
