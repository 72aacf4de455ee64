package fsck

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"path/filepath"
	"slices"

	"rnix/internal/durable"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// owner is who holds a history while it is mended, for people.
const owner = "rnix fsck"

// lockFile keeps two repairs of a data directory apart.
const lockFile = "fsck.lock"

// Repair is Check, and mends what can be mended: each finding says in Done what was done, or why not. It
// holds the lease of a history while it changes its files, so a history that is being written is left
// alone. Before a file is changed it is copied to <name>.before-repair-<time>. Store is required; an
// error of a history is said in its findings and does not stop the others. After a crash it can be run
// again.
func Repair(ctx context.Context, o Options) (Report, error) {
	if o.Store == nil {
		return Report{}, types.Errorf(types.ErrInvalid, "Fsck", o.DataDir, "a repair needs the open journal")
	}
	lock, err := o.FS.Lock(filepath.Join(o.DataDir, lockFile))
	if err != nil {
		return Report{}, err
	}
	defer lock.Close()
	r, all, err := check(ctx, &o)
	if err != nil {
		return r, err
	}
	m := &mender{&o}
	byID := map[types.UUID][]*Finding{}
	for i := range r.Findings {
		f := &r.Findings[i]
		switch {
		case f.fix == none:
		case f.fix == counter:
			f.done("set to the highest PID", m.raise(all))
		case f.fix == temps && f.UUID == nil:
			f.done("removed", o.FS.Remove(f.File))
		case f.fix == unlist:
			f.done("taken out", m.unlist(*f.UUID))
		default:
			byID[*f.UUID] = append(byID[*f.UUID], f)
		}
	}
	for _, h := range all {
		if fs := byID[h.id]; len(fs) > 0 {
			if ctx.Err() != nil {
				return r, types.Errorf(types.ErrCancelled, "Fsck", o.DataDir, "%w", context.Cause(ctx))
			}
			m.held(ctx, h, fs)
		}
	}
	return r, nil
}

// mender changes files, for the one repair that holds the lock.
type mender struct{ *Options }

// done notes what was done, or why not.
func (f *Finding) done(what string, err error) {
	if f.Done = what; err != nil {
		f.Done = "not repaired: " + err.Error()
	}
}

// held mends a history that it holds, if it is there still: it was seen before the hold was taken.
func (m *mender) held(ctx context.Context, h *history, fs []*Finding) {
	all := func(what string, err error) {
		for _, f := range fs {
			f.done(what, err)
		}
	}
	if m.Hold != nil && !slices.Contains(m.Only, h.id) { // of those the caller has the hold
		release, err := m.Hold(h.id)
		if err != nil && m.there(h) {
			all("", err)
			return
		}
		if err == nil {
			defer release()
		}
	}
	switch {
	case !m.there(h):
		all("it was archived or deleted meanwhile", nil)
	case fs[0].fix == ghost:
		all("removed", m.exorcise(ctx, h))
	default:
		m.mend(ctx, h, fs)
	}
}

// exorcise removes the directory of a history without a record: an earlier version made one when a repair and a collection met.
func (m *mender) exorcise(ctx context.Context, h *history) error {
	lease, err := m.Store.Open(ctx, h.id, owner) // who is just beginning it has it
	if err != nil {
		return err
	}
	defer func() { _ = m.Store.Release(context.WithoutCancel(ctx), h.id, lease.Epoch) }() // nothing of it is there
	path := filepath.Join(h.dir, step.StepsFile)
	if st, err := m.FS.Stat(path); err != nil || st.Size() > 0 {
		return types.Errorf(types.ErrConflict, "Fsck", h.id.String(), "the history is not empty any more")
	}
	if err := m.FS.Remove(path); err != nil {
		return err
	}
	return m.FS.Remove(h.dir)
}

// mend repairs one history: its journal first, and then what is derived from it.
func (m *mender) mend(ctx context.Context, h *history, fs []*Finding) {
	lease, err := m.lease(ctx, h, fs)
	if err != nil {
		for _, f := range fs {
			if f.Done == "" {
				f.done("", err)
			}
		}
		return
	}
	lease, err = m.rest(ctx, h, lease, fs)
	if err != nil {
		fs[0].done("", err)
	}
	state, folded, err := m.fold(ctx, h.id)
	for _, f := range fs {
		switch {
		case f.Done != "":
		case f.fix == cut || f.fix == divide: // opening the journal has found it whole
			f.Done = "it is whole now"
		case f.fix == temps:
			f.Done = "removed" // by opening the journal
		case err != nil:
			f.done("", err)
		default:
			f.done("made anew", m.derive(h, f, state, folded))
		}
	}
	if err := m.Store.Release(context.WithoutCancel(ctx), h.id, lease.Epoch); err != nil {
		fs[0].Done += "; the history could not be given back: " + err.Error()
	}
}

// Rested is what a history waits for whose end a repair has cut off.
const Rested = "rnix fsck has cut its end off; look at what it did last before it is resumed"

// rest keeps a history from going on by itself whose end is not there any more because it was cut off: it
// may have ended, and what it did behind the cut would be done again.
func (m *mender) rest(ctx context.Context, h *history, lease step.Lease, fs []*Finding) (step.Lease, error) {
	if !slices.ContainsFunc(fs, func(f *Finding) bool { return f.fix == cut || f.fix == divide }) {
		return lease, nil
	}
	id := h.id
	state, _, err := m.fold(ctx, id)
	if err != nil || state.Seq == 0 || state.Phase == recovery.Ended || state.Phase == recovery.Suspended || state.Paused {
		return lease, err
	}
	w := step.NewWriter(m.Store, id, lease)
	detail, err := json.Marshal(step.SuspendDetail{Kind: types.SuspendHeld})
	if err != nil {
		return lease, types.Errorf(types.ErrInternal, "Repair", id.String(), "encode: %w", err)
	}
	if err := w.Marker(&step.Marker{Name: step.MarkerSuspended, PID: state.PID, Text: Rested, Detail: detail}); err != nil {
		return lease, err
	}
	if err := w.Commit(ctx); err != nil {
		return lease, err
	}
	folded, err := step.ReadHistory(ctx, m.Store, id)
	if err != nil {
		return lease, err
	}
	if _, err := m.keep(filepath.Join(h.dir, step.InfoFile)); err != nil {
		return lease, err
	}
	p := folded.Info()
	p.ActiveTotal, p.Runs = state.Active, state.Runs
	return lease, m.Store.Index().Save(&p)
}

// lease takes the history and leaves its journal whole. A journal that is damaged in its middle cannot
// be taken, by nobody: it is divided first, which the lock of the repair allows to one at a time.
func (m *mender) lease(ctx context.Context, h *history, fs []*Finding) (step.Lease, error) {
	var broken *Finding
	for _, f := range fs {
		if f.fix == cut || f.fix == divide {
			broken = f
		}
	}
	if m.live(h.id) {
		return step.Lease{}, types.Errorf(types.ErrConflict, "Fsck", h.id.String(), "the history is being written")
	}
	copies, err := m.copies(h, fs)
	if err != nil {
		return step.Lease{}, err
	}
	path := filepath.Join(h.dir, step.StepsFile)
	lease, err := m.Store.Open(ctx, h.id, owner)
	if types.CodeOf(err) == types.ErrConflict { // somebody writes it, so nothing is changed
		for _, name := range copies {
			err = errors.Join(err, m.FS.Remove(name))
		}
		return lease, err
	}
	if code := types.CodeOf(err); broken != nil && broken.fix == divide && (code == types.ErrStorage || code == types.ErrInvalid) {
		side, derr := m.divide(h, path)
		if derr != nil {
			return step.Lease{}, derr
		}
		broken.Done = fmt.Sprintf("the history ends before it now; what was behind is in %s", filepath.Base(side))
		return m.Store.Open(ctx, h.id, owner)
	}
	if err == nil && lease.Damage != "" && broken != nil {
		broken.Done = lease.Damage
	}
	return lease, err
}

// copies copies what is going to be changed: taking a history already cuts off what is torn, and drops what
// is of no use. It returns the names of the copies.
func (m *mender) copies(h *history, fs []*Finding) (names []string, err error) {
	seen := map[string]bool{"": true}
	for _, f := range fs {
		file := map[fix]string{cut: f.File, divide: f.File, snapshot: f.File, forget: f.File, info: step.InfoFile, events: f.File}[f.fix]
		if seen[file] {
			continue
		}
		seen[file] = true
		name, err := m.keep(filepath.Join(h.dir, file))
		if err != nil {
			return names, err
		}
		if name != "" {
			names = append(names, name)
		}
	}
	return names, nil
}

// divide cuts a journal before its first fault and puts the rest, byte for byte, into a file of its own.
// The rest, and the copy that was made before, are durable before the journal is replaced, in one piece.
func (m *mender) divide(h *history, path string) (side string, err error) {
	all, err := durable.ReadFile(m.FS, path)
	if err != nil {
		return "", err
	}
	if h.good > int64(len(all)) {
		return "", types.Errorf(types.ErrConflict, "Fsck", h.id.String(), "the journal has changed since it was read")
	}
	side = m.free(fmt.Sprintf("%s.behind-%d", path, h.good))
	if err := durable.WriteFile(m.FS, side, all[h.good:], durable.Durable); err != nil {
		return "", err
	}
	return side, durable.WriteFile(m.FS, path, all[:h.good], durable.Durable)
}

// fold reads a history whose lease is held.
func (m *mender) fold(ctx context.Context, id types.UUID) (*recovery.State, *step.History, error) {
	folded, err := step.ReadHistory(ctx, m.Store, id)
	if err != nil {
		return nil, nil, err
	}
	state, _, damage, err := recovery.Read(func(from uint64) iter.Seq2[step.Record, error] { return m.Store.Replay(ctx, id, from) }, nil)
	if err == nil && damage != "" {
		err = errors.New(damage)
	}
	return state, folded, err
}

// derive makes a derived file anew.
func (m *mender) derive(h *history, f *Finding, state *recovery.State, folded *step.History) error {
	path := filepath.Join(h.dir, f.File)
	switch f.fix {
	case snapshot:
		cp, err := state.Checkpoint(h.id)
		if err == nil {
			err = m.remove(path) // or it would become the one before
		}
		if err == nil {
			err = step.WriteCheckpoint(m.FS, h.dir, cp)
		}
		return err
	case forget:
		return m.remove(path)
	case info:
		p := folded.Info()
		p.ActiveTotal, p.Runs = state.Active, state.Runs
		return m.Store.Index().Save(&p)
	case events:
		return m.divideEvents(path)
	}
	return nil
}

// divideEvents puts the lines of events.jsonl aside that cannot be read, all of them at the first call.
func (m *mender) divideEvents(path string) error {
	all, err := durable.ReadFile(m.FS, path)
	if err != nil {
		return err
	}
	good, bad := sound(all)
	if len(bad) == 0 {
		return nil
	}
	return durable.WriteFile(m.FS, path, good, durable.Durable)
}
