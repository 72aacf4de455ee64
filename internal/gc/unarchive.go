package gc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// defaultReprieve is how long a history that was put back stays, where there is no retention.
const defaultReprieve = 30 * day

// Archived returns the histories that are archived, in the order of their creation.
func (c *Collector) Archived() []step.Archived {
	all := c.archives.List()
	live := map[types.UUID]bool{}
	for _, p := range c.o.Index.List() {
		live[p.UUID] = true
	}
	out := all[:0]
	for _, a := range all {
		if !live[a.Info.UUID] {
			out = append(out, a)
		}
	}
	return out
}

// ArchiveOf returns the archive of a history, if there is one; the history may be there as well.
func ArchiveOf(c *Collector, id types.UUID) (step.Archived, bool) { return c.archives.Find(id) }

// Deleted returns the histories that were deleted, the latest last.
func (c *Collector) Deleted() []step.Tomb {
	all := c.tombs.List()
	out := all[:0]
	for _, t := range all {
		if _, archived := c.archives.Find(t.UUID); !archived && !c.present(t.UUID) {
			out = append(out, t)
		}
	}
	return out
}

// Explain returns an error of code NOT_FOUND that says what became of a history that is archived or
// was deleted; nil of any other.
func (c *Collector) Explain(id types.UUID) error {
	if c.present(id) {
		return nil
	}
	if a, ok := c.archives.Find(id); ok {
		return types.Errorf(types.ErrNotFound, "History", id.String(), "it was archived on %s (%s); put it back with: rnix unarchive %s", a.At.Local().Format(time.DateOnly), a.Why, id)
	}
	if t, ok := c.tombs.Find(id); ok {
		return types.Errorf(types.ErrNotFound, "History", id.String(), "PID %d (%s) was deleted on %s: %s", t.PID, t.Intent, t.At.Local().Format(time.DateOnly), t.Why)
	}
	return nil
}

// Unarchive puts a history back in one piece, with all that was packed, and then removes its archive. Its workspace is put back before.
// It is kept for as long as gc.retention_days says from now on, as if it had just ended. CONFLICT: the
// history is there. NOT_FOUND: there is no archive. An archive that is damaged is STORAGE, and stays. With lose
// the workspace is given up, which is for one that cannot be put back; Back.Said says how the work in it is had.
func (c *Collector) Unarchive(ctx context.Context, id types.UUID, lose bool) (Back, error) {
	release, err := c.Hold(id, "rnix unarchive")
	if err != nil {
		return Back{}, err
	}
	defer release()
	archive := step.ArchivePath(c.data, id)
	_, err = c.fs.Stat(archive)
	switch {
	case c.present(id):
		return Back{}, types.Errorf(types.ErrConflict, "Unarchive", id.String(), "the history is there already, in %s", c.dir(id))
	case errors.Is(err, fs.ErrNotExist):
		if err := c.Explain(id); err != nil {
			return Back{}, err
		}
		return Back{}, types.Errorf(types.ErrNotFound, "Unarchive", id.String(), "there is no archive of this history")
	case err != nil:
		return Back{}, storage("Unarchive", archive, err)
	}
	back := c.back(id)
	said := ""
	info, err := c.unpack(ctx, archive, id, back, c.reprieve)
	if err == nil {
		said, err = unstow(ctx, c, info, id, lose)
	}
	if err == nil {
		err = c.appear(id, back)
	}
	if err != nil {
		_ = c.removeAll(back) // the error that is returned says why; Open removes what is left
		return Back{}, err
	}
	err = c.o.Index.Put(*info)
	if !lose { // the workspace of another history in which it works, if a run has put that away since: now that it is listed, none does
		_, serr := unstow(ctx, c, info, id, false)
		err = errors.Join(err, serr)
	}
	c.archives.Delete(id)
	// An archive that cannot be removed is hidden by the directory, and removed at the next start.
	_ = c.removeArchive(id)
	return Back{*info, said}, err
}

// unpack makes the history in dir, durably but for the name of dir; last adds to it what was not packed.
func (p press) unpack(ctx context.Context, archive string, id types.UUID, dir string, last func(dir string) error) (*step.ProcInfo, error) {
	if err := p.removeAll(dir); err != nil {
		return nil, err
	}
	if err := p.fs.Mkdir(dir, durable.DirPerm); err != nil {
		return nil, storage("Unarchive", dir, err)
	}
	made := []string{dir}
	head, _, err := p.readArchive(ctx, archive, id, unpacking{
		dir: func(name string) error {
			path := filepath.Join(dir, filepath.FromSlash(name))
			made = append(made, path)
			return storage("Unarchive", path, p.fs.Mkdir(path, durable.DirPerm))
		},
		file: func(name string, size int64, r io.Reader) error {
			return p.writeFile(filepath.Join(dir, filepath.FromSlash(name)), size, r)
		},
	})
	if err != nil {
		return nil, err
	}
	info, err := step.ReadInfo(p.fs, dir)
	if err != nil || info.UUID != id {
		info = &head.Info // it was lost before it was packed
	}
	if err := last(dir); err != nil {
		return nil, err
	}
	for _, d := range made {
		if err := p.fs.SyncDir(d); err != nil {
			return nil, storage("Unarchive", d, err)
		}
	}
	return info, nil
}

func (p press) writeFile(path string, size int64, r io.Reader) error {
	f, err := p.fs.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, durable.FilePerm)
	if err != nil {
		return storage("Unarchive", path, err)
	}
	n, err := io.Copy(f, r)
	if err == nil && n < size {
		err = io.ErrUnexpectedEOF
	}
	if err == nil {
		err = f.Sync()
	}
	return storage("Unarchive", path, errors.Join(err, f.Close()))
}

// reprieve marks a history that is put back, so that it does not go again at once.
func (c *Collector) reprieve(dir string) error {
	now := time.Now().UTC()
	if pin, err := step.ReadPin(c.fs, dir); err != nil || pin.Holds(now) {
		return nil // one that cannot be read holds too
	}
	stay := defaultReprieve
	if n := c.o.Policy.RetentionDays; n > 0 {
		stay = time.Duration(min(n, maxDays)) * day
	}
	until := now.Add(stay)
	return step.WritePin(c.fs, dir, &step.Pin{At: now, Until: until, Reprieve: true, Note: fmt.Sprintf("put back from its archive, until %s", until.Format(time.DateOnly))})
}
