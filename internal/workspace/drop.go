package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// Drop forgets the snapshots of a history: references and records. Rescues
// stay, because they may be all that is left of somebody's work. The bytes go with the next Sweep.
func (k *Keeper) Drop(ctx context.Context, id types.UUID) error {
	h, err := k.enter(ctx, id)
	if err != nil {
		return err
	}
	k.awaitSweep(h)
	defer k.leave(h)
	all, err := k.list(id)
	if err != nil {
		return err // a record that cannot be read may name a reference
	}
	var problems []error
	byRepo := map[string][]Stored{}
	for _, s := range all {
		if !s.Rescue {
			byRepo[s.Common] = append(byRepo[s.Common], s)
		}
	}
	for common, list := range byRepo {
		if common != "" {
			s, err := k.storeOf(ctx, id, common, formatOf(list[0].ID))
			if err == nil {
				err = k.unpin(ctx, id, s)
			}
			if err != nil {
				problems = append(problems, err)
				continue
			}
		}
		for _, s := range list {
			path := filepath.Join(k.recordDir(id), s.name+".json")
			if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
				problems = append(problems, storage(path, err))
			}
		}
	}
	_ = os.Remove(k.recordDir(id)) // stays if rescues are in it
	caches, _ := filepath.Glob(filepath.Join(plumbing.EscapeGlob(k.git.base), "cache", id.String()+"-*.json"))
	for _, dir := range append(caches, filepath.Join(k.git.base, "git", id.String()), k.autorunPath(id)) {
		if err := os.RemoveAll(dir); err != nil {
			problems = append(problems, storage(dir, err))
		}
	}
	h.last, h.loaded = nil, true
	clear(h.shadows)
	clear(h.caches)
	return errors.Join(problems...)
}

// unpin removes the references of the steps of a history from a store. What they held goes with the next sweep.
func (k *stores) unpin(ctx context.Context, id types.UUID, s *store) error {
	out, err := k.run(ctx, id, call{args: s.args("for-each-ref", "--format=delete %(refname)", refPrefix(id))})
	if err != nil || len(out) == 0 {
		return err
	}
	if err := durable.WriteFile(durable.OS, s.dropped(), nil, durable.Cached); err != nil {
		return err
	}
	remove := call{args: s.args("update-ref", "--no-deref", "--stdin"), input: out}
	if _, err = k.run(ctx, id, remove); types.CodeOf(err) == types.ErrDriver {
		s.unlock()
		_, err = k.run(ctx, id, remove)
	}
	return err
}

// Swept is what Sweep has removed.
type Swept struct {
	Objects   int
	Manifests int
	Bytes     int64
}

// Sweep removes what no record has any more: manifests, the bytes of files, and what crashes have left.
// No snapshot is made meanwhile. A record or a manifest that cannot be read ends it before anything is
// removed.
func (k *Keeper) Sweep(ctx context.Context) (Swept, error) {
	k.sweeping.Lock()
	defer k.sweeping.Unlock()
	manifests, blobs := map[string]bool{}, map[string]bool{}
	histories, err := os.ReadDir(k.archive.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Swept{}, storage(k.git.base, err)
	}
	for _, d := range histories {
		var id types.UUID
		if err := id.UnmarshalText([]byte(d.Name())); err != nil {
			return Swept{}, types.Errorf(types.ErrStorage, "Sweep", filepath.Join(k.archive.dir, d.Name()), "not the records of a history: move it away")
		}
		all, err := k.list(id)
		if err != nil {
			return Swept{}, err
		}
		for _, s := range all {
			if s.Kind != KindCopy || manifests[s.ID] {
				continue
			}
			manifests[s.ID] = true
			entries, err := copySource{k.store(), k.manifests(), s.ID}.entries(ctx)
			if types.CodeOf(err) == types.ErrNotFound {
				k.opts.Log.Warn("the manifest of a snapshot is missing", "uuid", id, "step", s.Step, "snapshot", s.ID)
				continue
			}
			if err != nil {
				return Swept{}, err
			}
			for _, e := range entries {
				blobs[e.Hash] = true
			}
		}
	}
	var out Swept
	if out.Objects, err = sweep(ctx, k.store(), blobs, &out.Bytes); err != nil {
		return out, err
	}
	out.Manifests, err = sweep(ctx, k.manifests(), manifests, &out.Bytes)
	k.turns.sweeps++ // what histories remember may name what is gone
	return out, errors.Join(err, k.sweepStores(ctx, &out), os.RemoveAll(filepath.Join(k.git.base, "cache")))
}

// sweep removes all objects but some.
func sweep(ctx context.Context, o objects, keep map[string]bool, bytes *int64) (n int, err error) {
	err = filepath.WalkDir(o.dir, func(p string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist) || err == nil && d.IsDir():
			return nil
		case err == nil:
			err = ctx.Err()
		}
		if err != nil {
			return err
		}
		id := strings.ReplaceAll(strings.TrimPrefix(p, o.dir), string(filepath.Separator), "")
		if keep[id] {
			return nil
		}
		if info, err := d.Info(); err == nil {
			*bytes += info.Size()
		}
		n++
		return os.Remove(p)
	})
	if err != nil {
		if ctx.Err() != nil {
			return n, types.Errorf(types.ErrCancelled, "Sweep", o.dir, "%w", context.Cause(ctx))
		}
		return n, storage(o.dir, err)
	}
	return n, nil
}
