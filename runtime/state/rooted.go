package state

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/types"
)

// open returns the file system in which the state of a work tree lies.
func (s *Store) open(worktree string) (durable.FS, error) {
	if s.fsys != nil {
		return s.fsys(worktree)
	}
	info, err := os.Stat(worktree)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, types.Errorf(types.ErrNotFound, "Open", worktree, "%w: there is no such work tree", ErrNotFound)
	case err != nil:
		return nil, types.Errorf(types.ErrStorage, "Open", worktree, "%w", err)
	case !info.IsDir():
		return nil, types.Errorf(types.ErrInvalid, "Open", worktree, "a work tree is a directory")
	}
	dir := filepath.Join(worktree, AgentDirName)
	if info, err := os.Lstat(dir); err == nil && !info.IsDir() { // what works in there may have planted a link
		return nil, types.Errorf(types.ErrPermission, "Open", dir, "is no directory but %s; remove it", info.Mode().Type())
	}
	return rooted{worktree}, nil
}

// rooted is the file system below a work tree: no name, and no link that was planted in there, leads out of it. A
// handle is opened for each call, so that nothing is left open between them.
type rooted struct{ top string }

// in runs fn with the root and a name below it.
func in[T any](r rooted, name string, fn func(root *os.Root, name string) (T, error)) (T, error) {
	var none T
	root, err := os.OpenRoot(r.top)
	if err != nil {
		return none, err
	}
	defer root.Close()
	rel, err := filepath.Rel(r.top, name)
	if err != nil {
		return none, err
	}
	return fn(root, rel)
}

func (r rooted) do(name string, fn func(root *os.Root, name string) error) error {
	_, err := in(r, name, func(root *os.Root, name string) (struct{}, error) { return struct{}{}, fn(root, name) })
	return err
}

func (r rooted) OpenFile(name string, flag int, perm fs.FileMode) (durable.File, error) {
	f, err := in(r, name, func(root *os.Root, name string) (*os.File, error) { return root.OpenFile(name, flag, perm) })
	if err != nil {
		return nil, err // not a File that holds a nil pointer
	}
	return f, nil
}

func (r rooted) Stat(name string) (fs.FileInfo, error) {
	return in(r, name, (*os.Root).Stat)
}

func (r rooted) ReadDir(name string) ([]fs.DirEntry, error) {
	return in(r, name, func(root *os.Root, name string) ([]fs.DirEntry, error) {
		d, err := root.Open(name)
		if err != nil {
			return nil, err
		}
		defer d.Close()
		return d.ReadDir(-1)
	})
}

// Mkdir makes .agent as the repository's tools expect it: open to the group.
func (r rooted) Mkdir(name string, _ fs.FileMode) error {
	return r.do(name, func(root *os.Root, name string) error { return root.Mkdir(name, 0o750) })
}

func (r rooted) Rename(oldname, newname string) error {
	return r.do(oldname, func(root *os.Root, oldrel string) error {
		newrel, err := filepath.Rel(r.top, newname)
		if err != nil {
			return err
		}
		return root.Rename(oldrel, newrel)
	})
}

func (r rooted) Remove(name string) error { return r.do(name, (*os.Root).Remove) }

func (r rooted) SyncDir(name string) error {
	return r.do(name, func(root *os.Root, name string) error {
		d, err := root.Open(name)
		if err != nil {
			return err
		}
		return errors.Join(d.Sync(), d.Close())
	})
}

// Lock locks a file in which nothing is written: a link of its name could lead to another.
func (r rooted) Lock(name string) (durable.Lock, error) {
	f, err := in(r, name, func(root *os.Root, name string) (*os.File, error) {
		return root.OpenFile(name, os.O_RDWR|os.O_CREATE|unix.O_NONBLOCK, durable.FilePerm)
	})
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Lock", name, "%w", err)
	}
	for err = unix.EINTR; err == unix.EINTR; {
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	switch {
	case err == nil:
		return durable.LockedFile(f, func(string) (fs.FileInfo, error) { return r.Stat(name) })
	case err == unix.EWOULDBLOCK:
		err = types.Errorf(types.ErrConflict, "Lock", name, "timed out waiting for the lock: another process writes the state of this work tree")
	default:
		err = types.Errorf(types.ErrStorage, "Lock", name, "%w", err)
	}
	f.Close()
	return nil, err
}
