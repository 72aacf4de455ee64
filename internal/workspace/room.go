package workspace

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/types"
)

// Room is what the snapshots of all histories take up, in bytes. Its maps have no entry for a history
// without snapshots.
type Room struct {
	// Own is on the disk below the data directory and belongs to one history alone: it would be free without
	// that history. What several share, as the histories of one git repository do, or nobody has any more, is the rest of <data>/snapshots.
	Own map[types.UUID]int64
}

// several stands in Keeper.Room for the owner of what more than one history has.
var several = types.UUID{}

// Room adds up what the snapshots of all histories take up. It reads each manifest once and opens no
// other file but records. What cannot be read is counted as shared, and is an error beside the rest. What is
// removed meanwhile may be missing.
func (k *Keeper) Room(ctx context.Context) (Room, error) {
	r := Room{Own: map[types.UUID]int64{}}
	dirs, err := os.ReadDir(k.archive.dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return r, storage(k.archive.dir, err)
	}
	var problems []error
	manifests, blobs := map[string]types.UUID{}, map[string]types.UUID{}
	for _, d := range dirs {
		var id types.UUID
		if len(d.Name()) != 36 || id.UnmarshalText([]byte(d.Name())) != nil {
			continue // Sweep says so
		}
		all, err := k.list(id)
		problems = append(problems, err)
		for i := range all {
			if s := &all[i]; s.Kind == KindCopy {
				claim(manifests, s.ID, id)
			}
		}
		r.Own[id] += weigh(filepath.Join(k.archive.dir, d.Name())) + weigh(filepath.Join(k.git.base, "git", d.Name())) + weigh(k.autorunPath(id))
	}
	for id, owner := range manifests {
		if ctx.Err() != nil {
			return r, types.Errorf(types.ErrCancelled, "Usage", k.git.base, "%w", context.Cause(ctx))
		}
		entries, err := copySource{k.store(), k.manifests(), id}.entries(ctx)
		if types.CodeOf(err) != types.ErrNotFound { // which a restore says
			problems = append(problems, err)
		}
		for i := range entries {
			if e := &entries[i]; e.Mode.IsRegular() {
				claim(blobs, e.Hash, owner)
			}
		}
	}
	k.store().attribute(blobs, r.Own)
	k.manifests().attribute(manifests, r.Own)
	caches, err := os.ReadDir(filepath.Join(k.git.base, "cache"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problems = append(problems, storage(filepath.Join(k.git.base, "cache"), err))
	}
	for _, c := range caches {
		var id types.UUID
		if n := c.Name(); len(n) > 36 && id.UnmarshalText([]byte(n[:36])) == nil {
			r.Own[id] += lengthOf(c)
		}
	}
	delete(r.Own, several)
	return r, errors.Join(problems...)
}

// claim notes that a history has an object.
func claim(owners map[string]types.UUID, object string, id types.UUID) {
	if was, ok := owners[object]; ok && was != id {
		id = several
	}
	owners[object] = id
}

// attribute adds the bytes of each object to those of its owner.
func (o objects) attribute(owners map[string]types.UUID, own map[types.UUID]int64) {
	walkFiles(o.dir, func(p string, d fs.DirEntry) {
		id := strings.ReplaceAll(strings.TrimPrefix(p, o.dir), string(filepath.Separator), "")
		if owner, ok := owners[id]; ok {
			own[owner] += lengthOf(d)
		}
	})
}

// weigh returns the bytes of all files below a directory; 0 if it is not there.
func weigh(dir string) (total int64) {
	walkFiles(dir, func(_ string, d fs.DirEntry) { total += lengthOf(d) })
	return total
}

// walkFiles calls fn for everything below a directory that is none itself and can be seen.
func walkFiles(dir string, fn func(path string, d fs.DirEntry)) {
	_ = filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error { // fn has no errors
		if err == nil && !d.IsDir() {
			fn(p, d)
		}
		return nil
	})
}

// lengthOf returns the length of a file; 0 of one that has just gone.
func lengthOf(d fs.DirEntry) int64 {
	info, err := d.Info()
	if err != nil {
		return 0
	}
	return info.Size()
}
