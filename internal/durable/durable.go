// Package durable puts bytes on a disk so that they are there after a crash, and says exactly what
// was lost when they are not: atomic replacement of small files, append-only logs of lines whose
// torn tail is cut and reported, and counters that never go back.
//
// It owns the order of write, sync and rename. It does not know what the bytes mean: a log asks a
// check function of its caller whether a line is whole. Everything goes through FS, so that a test
// can fail or crash at each single call (package faultfs).
package durable

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"rnix/types"
)

// FS is the part of a file system that this package needs. Names are as in package os. Errors wrap
// those of io/fs, so errors.Is(err, fs.ErrNotExist) works.
type FS interface {
	// OpenFile opens a file with the flags of package os. Files opened with os.O_APPEND are written
	// at their end.
	OpenFile(name string, flag int, perm fs.FileMode) (File, error)
	Stat(name string) (fs.FileInfo, error)
	ReadDir(name string) ([]fs.DirEntry, error)
	Mkdir(name string, perm fs.FileMode) error
	Rename(oldname, newname string) error
	Remove(name string) error
	// SyncDir makes the names in a directory durable.
	SyncDir(name string) error
	// Lock takes an exclusive lock on a directory that is there, or on a file that it creates if need be. If
	// another process has it, the error has code CONFLICT and names that process. Closing gives the lock back;
	// so does the end of the process, however it ends.
	Lock(name string) (Lock, error)
}

// Lock is a lock that is held.
type Lock interface {
	io.Closer
	// Check returns an error with code CONFLICT if what is locked no longer has the name by which it was
	// locked: somebody has removed or replaced it, and the lock keeps no other process from what is there now.
	// It costs one call of the system.
	Check() error
}

// File is an open file.
type File interface {
	io.Reader
	io.ReaderAt
	io.Writer
	io.Closer
	Truncate(size int64) error
	// Sync makes the bytes and the length of the file durable, not necessarily its times.
	Sync() error
	Stat() (fs.FileInfo, error)
}

// Class says how much a file is worth.
type Class bool

// The classes.
const (
	Cached  Class = false // whole or absent after kill -9, may be lost or empty after power loss: something else can rebuild it
	Durable Class = true  // there after power loss, in the old or the new form
)

// Permissions of everything that this package makes.
const (
	FilePerm fs.FileMode = 0o600
	DirPerm  fs.FileMode = 0o700
)

const tempSuffix = ".tmp~"

// WriteFile replaces the file at path by one that holds data, or creates it, so that a reader sees
// the old or the new bytes and nothing between. The directory must exist. After an error the old
// file is still there and no other file is left behind.
func WriteFile(fsys FS, path string, data []byte, class Class) error {
	tmp := tempName(path)
	err := writeTemp(fsys, tmp, data, class)
	if err == nil {
		err = fsys.Rename(tmp, path)
	}
	if err != nil {
		if fsys.Remove(tmp) == nil {
			_ = fsys.SyncDir(filepath.Dir(path)) // so that power loss does not bring it back
		}
		return wrap("WriteFile", path, err)
	}
	if class == Cached {
		return nil
	}
	return wrap("WriteFile", path, fsys.SyncDir(filepath.Dir(path)))
}

// tempName returns a name beside path that RemoveTemp knows.
func tempName(path string) string {
	var r [6]byte
	rand.Read(r[:])
	return filepath.Join(filepath.Dir(path), "."+filepath.Base(path)+"."+hex.EncodeToString(r[:])+tempSuffix)
}

// IsTemp reports whether a file or directory is one that WriteFile or RemoveDir works on, or that a crash has left of them.
func IsTemp(name string) bool {
	return strings.HasPrefix(name, ".") && strings.HasSuffix(name, tempSuffix)
}

func writeTemp(fsys FS, tmp string, data []byte, class Class) error {
	f, err := fsys.OpenFile(tmp, os.O_WRONLY|os.O_CREATE|os.O_EXCL, FilePerm)
	if err != nil {
		return err
	}
	n, err := f.Write(data)
	if err == nil && n < len(data) {
		err = io.ErrShortWrite
	}
	if err == nil && class == Durable {
		err = f.Sync()
	}
	return errors.Join(err, f.Close())
}

// RemoveTemp removes what a crash in the middle of WriteFile or RemoveDir has left in a directory.
// One that is gone meanwhile, because it was being written and has its name now, is no error.
func RemoveTemp(fsys FS, dir string) error {
	entries, err := fsys.ReadDir(dir)
	if err != nil {
		return wrap("RemoveTemp", dir, err)
	}
	var temps []fs.DirEntry
	dirs := false
	for _, e := range entries {
		if IsTemp(e.Name()) {
			temps = append(temps, e)
			dirs = dirs || e.IsDir()
		}
	}
	if dirs { // else power loss could give one its name back, without what was in it
		err = fsys.SyncDir(dir)
	}
	for _, e := range temps {
		if err == nil {
			if err = removeTree(fsys, filepath.Join(dir, e.Name()), e.IsDir()); errors.Is(err, fs.ErrNotExist) && !e.IsDir() {
				err = nil
			}
		}
	}
	if err == nil && len(temps) > 0 {
		err = fsys.SyncDir(dir)
	}
	return wrap("RemoveTemp", dir, err)
}

// RemoveDir removes a directory with all that is in it. After a crash it is there as it was, or not
// at all; once RemoveDir has returned nil, it is gone for good. A missing directory is no error.
func RemoveDir(fsys FS, dir string) error {
	tmp := tempName(dir)
	err := fsys.Rename(dir, tmp)
	if errors.Is(err, fs.ErrNotExist) {
		return wrap("RemoveDir", dir, fsys.SyncDir(filepath.Dir(dir))) // who removed it may not have
	}
	if err == nil {
		err = fsys.SyncDir(filepath.Dir(dir))
	}
	if err == nil {
		err = removeTree(fsys, tmp, true)
	}
	return wrap("RemoveDir", dir, err)
}

func removeTree(fsys FS, name string, dir bool) error {
	if dir {
		entries, err := fsys.ReadDir(name)
		for _, e := range entries {
			err = errors.Join(err, removeTree(fsys, filepath.Join(name, e.Name()), e.IsDir()))
		}
		if err != nil {
			return err
		}
	}
	return fsys.Remove(name)
}

// ReadFile returns the bytes of a file. A missing file is NOT_FOUND.
func ReadFile(fsys FS, path string) ([]byte, error) {
	f, err := fsys.OpenFile(path, os.O_RDONLY, 0)
	if err != nil {
		return nil, wrap("ReadFile", path, err)
	}
	defer f.Close()
	var b []byte
	if info, err := f.Stat(); err == nil && info.Size() < 1<<30 {
		b = make([]byte, 0, info.Size()+1)
	}
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if err == io.EOF {
			return b, nil
		}
		if err != nil {
			return nil, wrap("ReadFile", path, err)
		}
	}
}

// MkdirAll makes a directory and those above it that are missing, for the owner only, and makes the
// new names durable.
func MkdirAll(fsys FS, dir string) error {
	info, err := fsys.Stat(dir)
	if err == nil {
		if !info.IsDir() {
			return types.Errorf(types.ErrInvalid, "MkdirAll", dir, "is a file, not a directory")
		}
		return nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return wrap("MkdirAll", dir, err)
	}
	parent := filepath.Dir(dir)
	if parent == dir {
		return wrap("MkdirAll", dir, err)
	}
	if err := MkdirAll(fsys, parent); err != nil {
		return err
	}
	if err := fsys.Mkdir(dir, DirPerm); err != nil && !errors.Is(err, fs.ErrExist) {
		return wrap("MkdirAll", dir, err)
	}
	return wrap("MkdirAll", dir, fsys.SyncDir(parent))
}

// wrap gives err the code that its kind has and names the file once. It returns nil for nil.
func wrap(op, path string, err error) error {
	if err == nil {
		return nil
	}
	var s *types.SyscallError
	if errors.As(err, &s) {
		return err
	}
	var pe *fs.PathError
	if errors.As(err, &pe) && pe == err {
		err = pe.Err
	}
	code := types.ErrStorage
	switch {
	case errors.Is(err, fs.ErrNotExist):
		code = types.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		code = types.ErrPermission
	}
	return types.Errorf(code, op, path, "%w", err)
}
