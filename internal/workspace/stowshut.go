package workspace

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/runtime/worktree"
)

// shut takes the name of a workspace away, so that nobody comes in any more, and looks whether everything in it still is what was proved to be
// kept. Then nothing keeps it from going, and its note says so. CONFLICT if something has changed, or a process works there; see open.
func (s stower) shut(n *stowed) error {
	dir, aside := n.Desk.Dir, n.aside()
	if n.there() {
		if err := os.Rename(dir, aside); err != nil {
			return fileError("Stow", dir, err)
		}
	}
	if err := durable.OS.SyncDir(filepath.Dir(dir)); err != nil {
		return storage(dir, err)
	}
	if _, err := os.Lstat(aside); err == nil && n.Seal != "" { // a note of an earlier version has none
		if pid, name := worktree.Worker(aside); pid != 0 {
			return conflict(dir, "process %d (%s) works there", pid, name)
		}
		if now, err := seal(aside); err != nil || now != n.Seal {
			return errors.Join(err, conflict(dir, "files were changed while it was rescued"))
		}
	}
	n.State = stowGoing
	return s.write(n)
}

// open takes back what shut did, and forgets that a workspace was to be put away: if it is not whole in its place again, what was kept of it stays.
// An error says where it is.
func (s stower) open(ctx context.Context, n *stowed) error {
	dir, aside := n.Desk.Dir, n.aside()
	if !n.there() {
		if _, err := os.Lstat(dir); !errors.Is(err, fs.ErrNotExist) {
			return conflict(dir, "another directory came into its place, and it is at %s: move one of them away", aside)
		}
		if err := os.Rename(aside, dir); err != nil {
			return fileError("Stow", aside, err)
		}
		if err := durable.OS.SyncDir(filepath.Dir(dir)); err != nil { // before what was kept of it goes
			return storage(dir, err)
		}
	}
	return s.forget(ctx)
}

// seal changes whenever anything in a directory does: the bytes, the permissions or the name of a file. It reads no file.
func seal(dir string) (string, error) {
	h := sha256.New()
	err := filepath.WalkDir(dir, func(path string, e fs.DirEntry, err error) error {
		if err != nil || path == dir { // its own times change with its name
			return err
		}
		info, err := e.Info()
		if err != nil {
			return err
		}
		st, device := statOf(info)
		_, err = fmt.Fprintf(h, "%q %d %+v\n", path[len(dir):], device, st)
		return err
	})
	if err != nil {
		return "", conflict(dir, "it cannot be read: %w", err)
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}
