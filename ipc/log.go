package ipc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"sync"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/runtime/statehome"
	"rnix/types"
)

// maxLog is the size in bytes at which a log is put aside as <name>.1, in place of the one before.
const maxLog = 10 << 20

// openLog opens the log at path for appending, with mode 0600, after putting a full one aside.
func openLog(path string) (*os.File, error) {
	if fi, err := os.Lstat(path); err == nil && fi.Size() >= maxLog {
		if err := os.Rename(path, path+".1"); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return nil, types.Errorf(types.ErrStorage, "Log", path, "%w", err)
		}
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Log", path, "%w", err)
	}
	return f, nil
}

// LogFile is the daemon's log: an append-only file that is put aside when it has 10 MiB, so that it
// and its predecessor are all that is kept.
type LogFile struct {
	path  string
	limit int64

	mu   sync.Mutex
	f    *os.File // +checklocks:mu
	size int64    // +checklocks:mu
}

// LogPath returns where the log is kept that belongs to path: there, or beside the socket as long as the file system of path is read-only.
func LogPath(path, socket string) string {
	if path == "" || !durable.OnReadOnly(path) {
		return path
	}
	return filepath.Join(filepath.Dir(socket), filepath.Base(path))
}

// OpenLog opens the log at path, in a private directory that is made if need be.
func OpenLog(path string) (*LogFile, error) {
	if err := statehome.CheckPrivateDir(filepath.Dir(path)); err != nil {
		return nil, err
	}
	f, err := openLog(path)
	if err != nil {
		return nil, err
	}
	l := &LogFile{path: path, limit: maxLog, f: f}
	if fi, err := f.Stat(); err == nil {
		l.size = fi.Size()
	}
	return l, nil
}

// Write appends p, whole. When the log is full it is put aside first; standard output and standard
// error, if they went to the old file as Ensure arranges it, then go to the new one, so that the
// trace of a crash is found where one looks for it.
func (l *LogFile) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.size > 0 && l.size+int64(len(p)) > l.limit {
		l.rotateLocked()
	}
	n, err := l.f.Write(p)
	l.size += int64(n)
	return n, err
}

// Close closes the log.
func (l *LogFile) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.f.Close()
}

// rotateLocked puts the log aside. If that fails the old file is written on: a long log is better
// than none. Renaming comes first, so whoever writes at the same moment loses nothing.
//
// +checklocks:l.mu
func (l *LogFile) rotateLocked() {
	l.size = 0 // if it fails, the next attempt comes after as many bytes again
	if err := os.Rename(l.path, l.path+".1"); err != nil {
		return
	}
	f, err := os.OpenFile(l.path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return
	}
	for _, std := range []*os.File{os.Stdout, os.Stderr} {
		if same(std, l.f) {
			_ = unix.Dup3(int(f.Fd()), int(std.Fd()), 0)
		}
	}
	_ = l.f.Close()
	l.f = f
}

func same(a, b *os.File) bool {
	x, err := a.Stat()
	if err != nil {
		return false
	}
	y, err := b.Stat()
	return err == nil && os.SameFile(x, y)
}
