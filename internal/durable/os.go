package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"rnix/types"
)

// OS is the file system of the machine.
var OS FS = osFS{}

type osFS struct{}

// OpenFile opens regular files only, and waits for nobody: a pipe in the place of a file would keep whoever opens it for ever.
func (osFS) OpenFile(name string, flag int, perm fs.FileMode) (File, error) {
	f, err := os.OpenFile(name, flag|syscall.O_NONBLOCK, perm)
	if err != nil {
		return nil, err // not a File that holds a nil pointer
	}
	if st, err := f.Stat(); err != nil || !st.Mode().IsRegular() {
		f.Close()
		if err == nil {
			err = fmt.Errorf("is no regular file but a %s", kindOf(st.Mode()))
		}
		return nil, &fs.PathError{Op: "open", Path: name, Err: err}
	}
	return osFile{f}, nil
}

// kindOf names what is not a regular file.
func kindOf(m fs.FileMode) string {
	switch {
	case m.IsDir():
		return "directory"
	case m&fs.ModeNamedPipe != 0:
		return "pipe"
	case m&fs.ModeSocket != 0:
		return "socket"
	}
	return "device"
}

func (osFS) Stat(name string) (fs.FileInfo, error)      { return os.Stat(name) }
func (osFS) ReadDir(name string) ([]fs.DirEntry, error) { return os.ReadDir(name) }
func (osFS) Mkdir(name string, perm fs.FileMode) error  { return os.Mkdir(name, perm) }
func (osFS) Rename(oldname, newname string) error       { return os.Rename(oldname, newname) }
func (osFS) Remove(name string) error                   { return os.Remove(name) }

func (osFS) SyncDir(name string) error {
	d, err := os.Open(name)
	if err != nil {
		return err
	}
	return errors.Join(d.Sync(), d.Close())
}

// Lock writes the number of this process into the file after it has the lock, for the message that
// others get. The file is never removed: that would let two processes lock two files of one name. Into a
// directory, and where the file system is read-only, nothing is written: whoever holds it is asked of the system.
func (osFS) Lock(name string) (Lock, error) {
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, FilePerm)
	dir := errors.Is(err, syscall.EISDIR)
	if dir {
		f, err = os.Open(name)
	}
	shown := ReadOnly(err) // it can be locked, and nothing can be written into it
	if shown {
		f, err = os.Open(name)
	}
	if err != nil {
		return nil, wrap("Lock", name, err)
	}
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	for err == syscall.EINTR {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}
	if err == syscall.EWOULDBLOCK {
		holder := LockHolder(f)
		if holder == "" && !dir {
			note, _ := io.ReadAll(io.LimitReader(f, 20))
			holder = strings.TrimSpace(string(note))
		}
		f.Close()
		return nil, lockedError(name, holder)
	}
	if err == nil && !dir && !shown {
		err = f.Truncate(0)
	}
	if err == nil && !dir && !shown {
		if _, err = fmt.Fprintln(f, os.Getpid()); NoRoom(err) {
			err = nil // the lock is what counts
		}
	}
	if err != nil {
		f.Close()
		return nil, wrap("Lock", name, err)
	}
	held, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, wrap("Lock", name, err)
	}
	own := held.Sys().(*syscall.Stat_t)
	return &lockedFile{f, func() (bool, error) { // asked at each commit: as cheap as it can be
		var now syscall.Stat_t
		err := syscall.Stat(name, &now)
		for err == syscall.EINTR {
			err = syscall.Stat(name, &now)
		}
		return err == nil && now.Dev == own.Dev && now.Ino == own.Ino, err
	}}, nil
}

// LockedFile makes a Lock of an open file that is locked, and is the Lock's from then on. stat looks at its name, as os.Stat does.
func LockedFile(f *os.File, stat func(name string) (fs.FileInfo, error)) (Lock, error) {
	held, err := f.Stat()
	if err != nil {
		f.Close()
		return nil, wrap("Lock", f.Name(), err)
	}
	return &lockedFile{f, func() (bool, error) { now, err := stat(f.Name()); return err == nil && os.SameFile(held, now), err }}, nil
}

type lockedFile struct {
	*os.File
	same func() (bool, error) // whether its name is still that of the file that is held
}

// Check implements Lock.
func (l *lockedFile) Check() error {
	same, err := l.same()
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR), err == nil && !same:
		return types.Errorf(types.ErrConflict, "Lock", l.Name(), "it was removed or replaced while it was locked")
	case err != nil:
		return wrap("Lock", l.Name(), err)
	}
	return nil
}

// Close gives the lock back, also where a child that is being started has a copy of the descriptor until it executes its program.
func (l *lockedFile) Close() error {
	err := syscall.Flock(int(l.Fd()), syscall.LOCK_UN)
	for err == syscall.EINTR {
		err = syscall.Flock(int(l.Fd()), syscall.LOCK_UN)
	}
	if err == syscall.EBADF {
		err = nil // it is closed: that says so itself
	}
	return errors.Join(err, l.File.Close())
}

func lockedError(name, holder string) error {
	if holder == "" {
		holder = "not known"
	}
	return types.Errorf(types.ErrConflict, "Lock", name, "another process holds it: pid %s", holder)
}

type osFile struct{ *os.File }

func (f osFile) Sync() error { return datasync(f.File) }
