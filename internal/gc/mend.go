package gc

import (
	"context"
	"errors"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// mender finishes what a crash has cut in two, before anybody works.
type mender struct{ *Collector }

// mend finishes what a crash has cut in two. What cannot be mended is a problem and is left alone.
func (m mender) mend() {
	problem := func(err error) {
		if err != nil {
			m.problems = append(m.problems, err.Error())
		}
	}
	dir := step.ArchiveDir(m.data)
	archives, err := m.fs.ReadDir(dir)
	if err == nil {
		problem(durable.RemoveTemp(m.fs, dir))
	} else if !errors.Is(err, fs.ErrNotExist) {
		problem(storage("GC", dir, err))
	}
	histories, err := m.fs.ReadDir(m.steps)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		problem(storage("GC", m.steps, err))
	}
	half := func(e fs.DirEntry) bool {
		return strings.HasPrefix(e.Name(), gonePrefix) || strings.HasPrefix(e.Name(), backPrefix)
	}
	if slices.ContainsFunc(histories, half) {
		if err := m.fs.SyncDir(m.steps); err != nil {
			problem(storage("GC", m.steps, err)) // without it, what seems to be gone may come back
			return
		}
	}
	there := map[string]bool{}
	for _, e := range histories {
		there[e.Name()] = true
	}
	for _, e := range histories {
		path := filepath.Join(m.steps, e.Name())
		if strings.HasPrefix(e.Name(), backPrefix) {
			problem(m.removeAll(path))
		} else if name, ok := strings.CutPrefix(e.Name(), gonePrefix); ok {
			problem(m.mendGone(path, name, there[name]))
		}
	}
	for _, e := range archives {
		name, _, ok := strings.Cut(e.Name(), ".")
		var id types.UUID
		if ok && there[name] && id.UnmarshalText([]byte(name)) == nil && m.present(id) {
			problem(m.dropCovered(context.Background(), id))
		}
	}
}

// mendGone removes what is left of a history that is archived or deleted. One that is neither, which
// no order of steps leaves, gets its name back.
func (m mender) mendGone(path, name string, other bool) error {
	var id types.UUID
	if id.UnmarshalText([]byte(name)) != nil {
		return types.Errorf(types.ErrStorage, "GC", path, "this is no directory of ours; it is left alone")
	}
	_, err := m.fs.Stat(step.ArchivePath(m.data, id))
	_, deleted := m.tombs.Find(id)
	if deleted && err != nil && !other {
		if err := drop(context.Background(), m.Collector, id); err != nil {
			return err
		}
	}
	if deleted || err == nil {
		return m.removeAll(path)
	}
	if other {
		return types.Errorf(types.ErrConflict, "GC", path, "there is a history of this name too, and no archive; it is left alone")
	}
	return storage("GC", path, m.fs.Rename(path, m.dir(id)))
}

// dropCovered removes an archive beside which the directory of its history stands, if the directory has
// all that is in the archive: so a crash leaves it between two steps. Another archive is CONFLICT.
func (c *Collector) dropCovered(ctx context.Context, id types.UUID) error {
	path := step.ArchivePath(c.data, id)
	if _, err := c.fs.Stat(path); errors.Is(err, fs.ErrNotExist) {
		return nil
	} else if err != nil {
		return storage("GC", path, err)
	}
	pass := unpacking{dir: func(string) error { return nil }, file: func(string, int64, io.Reader) error { return nil }}
	_, files, err := c.readArchive(ctx, path, id, pass)
	if err != nil {
		return err
	}
	if !c.covers(c.dir(id), files) {
		return types.Errorf(types.ErrConflict, "GC", path, "the history stands in %s too, and does not go on from this archive; move one of them away", c.dir(id))
	}
	if c.archives != nil {
		c.archives.Delete(id)
	}
	return c.removeArchive(id)
}

// mendArchives deletes the archives of which is on record that they went, after they were made.
func (m mender) mendArchives() {
	for _, a := range m.archives.List() {
		id := a.Info.UUID
		if t, deleted := m.tombs.Find(id); !deleted || !t.At.After(a.At) || m.present(id) {
			continue
		}
		if err := (taker{Collector: m.Collector}).endArchive(context.Background(), id); err != nil {
			m.problems = append(m.problems, err.Error())
		}
	}
}
