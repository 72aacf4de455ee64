package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/moved"
	"rnix/runtime/worktree"
	"rnix/types"
)

// Moved brings the notes on workspaces, and what repositories know of those that are git work trees, up to date after the
// data directory got another path. It returns how many were moved, and what could not be. It can be repeated.
func (k *Grove) Moved(ctx context.Context) (n int, err error) {
	dir := filepath.Dir(k.desks.deskPath(""))
	entries, err := os.ReadDir(dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return 0, storage(dir, err)
	}
	var errs []error
	for _, e := range entries {
		var d desk
		path := filepath.Join(dir, e.Name())
		if strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), ".json") {
			continue // a crash in the middle of a write
		}
		if b, err := durable.ReadFile(durable.OS, path); err != nil || json.Unmarshal(b, &d) != nil || d.Version < 1 || d.Version > deskVersion {
			continue // whoever wants this workspace is told
		}
		now := moved.Here(k.opts.Dir, d.Dir)
		if now == d.Dir {
			continue
		}
		if err := k.desks.move(ctx, d, path, now); err != nil {
			errs = append(errs, err)
			continue
		}
		n++
	}
	return n, errors.Join(errs...)
}

// move lets the note in a file be about the workspace that is in another directory now.
func (k *desks) move(ctx context.Context, d desk, path, now string) error {
	now = resolve(now)
	if d.Common != "" {
		if err := worktree.Repair(ctx, d.Common, d.Dir, now); err != nil {
			return err
		}
		for _, parent := range []string{filepath.Dir(now), now} { // the note is about a work tree, or about where one was being made
			m, err := k.nursery(d.owner(), parent)
			if err == nil {
				err = m.Moved(ctx, d.owner().String())
			}
			if err != nil {
				return err
			}
		}
	}
	d.Dir, d.Ref.Root = now, moved.Here(k.dataDir(), d.Ref.Root)
	b, err := json.Marshal(d)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Worktree", now, "%w", err)
	}
	if err := durable.WriteFile(durable.OS, k.deskPath(now), append(b, '\n'), durable.Durable); err != nil {
		return err
	}
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(path, err)
	}
	return nil
}

// dataDir is the directory below which all that this package keeps is.
func (k *git) dataDir() string { return filepath.Dir(k.base) }
