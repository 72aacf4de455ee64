package ipc

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/durable"
	"rnix/types"
)

// LockInfo says who holds a lock. It is what a lock file contains; part of the on-disk format.
type LockInfo struct {
	V       int       `json:"v"` // 1
	PID     int       `json:"pid"`
	Socket  string    `json:"socket,omitempty"` // where the holder listens
	Started time.Time `json:"started"`
	// Warden is the process that holds the lock too, until it has ended what the holder has left; 0 = none does.
	Warden int `json:"warden,omitempty"`

	path string // of the lock, where LockHolder has found this
	mute bool   // the holder could write no note, as on a read-only file system: only its PID is known, as long as it lives
}

// Ended reports whether the holder has ended: then its warden is at work, and whoever wants the lock need only wait.
func (i LockInfo) Ended() bool {
	if i.PID <= 0 {
		return i.mute
	}
	fd, err := unix.PidfdOpen(i.PID, 0)
	if err != nil {
		return err == unix.ESRCH
	}
	defer unix.Close(fd)
	n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 0) // also of one that was not waited for
	return err == nil && n > 0
}

// Kill kills the holder. It does nothing if it has ended.
func (i LockInfo) Kill() error {
	fd, err := unix.PidfdOpen(i.PID, 0)
	if err == nil {
		defer unix.Close(fd)
		// Now no other process can have its number: is it still the holder?
		if now, held, lerr := LockHolder(i.path); lerr != nil || !held || now.PID != i.PID || !now.Started.Equal(i.Started) {
			return lerr
		}
		err = unix.PidfdSendSignal(fd, unix.SIGKILL, nil, 0)
	}
	if err != nil && err != unix.ESRCH {
		return types.Errorf(types.ErrPermission, "Kill", fmt.Sprint(i.PID), "%w", err)
	}
	return nil
}

// WakeWarden has the warden of a holder that has ended do its work, if somebody has stopped that.
func (i LockInfo) WakeWarden() {
	if i.Warden > 1 && i.Ended() {
		_ = unix.Kill(i.Warden, unix.SIGCONT) // it may be gone: then the lock is free
	}
}

// Lock is a lock on a file, held until Close or until the process ends, however it ends. Lock files
// are never removed: the lock is on the open file, not on the name, and is not inherited. A process that is given
// the open file holds the lock too.
type Lock struct {
	f    *os.File
	note LockInfo
	mute bool // f was opened for reading: nothing can be written into it
}

// DataLock returns the path of the lock that the daemon of a data directory holds. By it a client
// finds the daemon even if it would look for another socket, as in a session without
// XDG_RUNTIME_DIR or through a symbolic link to the directory.
func DataLock(dataDir string) string { return filepath.Join(dataDir, "daemon.lock") }

// TakeLock takes the lock on the file path, which is made if need be, and notes in it who holds it.
// If it is held already, the error has the code CONFLICT and names the holder's PID.
func TakeLock(path, socket string) (*Lock, error) {
	l, err := tryLock(path)
	if err != nil {
		return nil, err
	}
	if l == nil {
		holder, _, _ := LockHolder(path)
		since := ""
		if !holder.Started.IsZero() {
			since = " since " + holder.Started.Local().Format(time.DateTime)
		}
		return nil, types.Errorf(types.ErrConflict, "Lock", path, "a daemon runs already, as pid %d%s; stop it with: rnix daemon stop", holder.PID, since)
	}
	l.note = LockInfo{V: 1, PID: os.Getpid(), Socket: socket, Started: time.Now().Truncate(time.Second)}
	if err := l.write(); err != nil {
		_ = l.Close()
		return nil, err
	}
	return l, nil
}

// write writes the note.
func (l *Lock) write() error {
	if l.mute {
		return nil
	}
	note, _ := json.Marshal(l.note)
	note = append(note, '\n')
	_, err := l.f.WriteAt(note, 0) // what is there takes its room already
	if err == nil {
		err = l.f.Truncate(int64(len(note)))
	}
	if err != nil && !durable.Unwritable(err) { // the lock is what counts; the socket is where it always is
		return types.Errorf(types.ErrStorage, "Lock", l.f.Name(), "%w", err)
	}
	return nil
}

// Share returns the open file, for the warden of that pid to hold the lock too, and notes that it does. The file is the lock's to close.
func (l *Lock) Share(warden int) (*os.File, error) {
	l.note.Warden = warden
	return l.f, l.write()
}

// Keep makes the lock file again if somebody has removed or replaced it, and reports whether it did. A warden that shares the lock has no
// share in the new one.
func (l *Lock) Keep() (again bool, err error) {
	held, err := l.f.Stat()
	if err != nil {
		return false, types.Errorf(types.ErrStorage, "Lock", l.f.Name(), "%w", err)
	}
	if now, err := os.Lstat(l.f.Name()); err == nil && os.SameFile(held, now) {
		return false, nil
	}
	fresh, err := tryLock(l.f.Name())
	if err != nil {
		return false, err
	}
	if fresh == nil {
		return false, types.Errorf(types.ErrConflict, "Lock", l.f.Name(), "another process has locked what is in its place")
	}
	old := l.f
	l.f, l.note.Warden, l.mute = fresh.f, 0, fresh.mute
	return true, errors.Join(l.write(), old.Close())
}

// tryLock takes the lock on path without a note. It returns nil if somebody else holds it.
func tryLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	mute := durable.ReadOnly(err)
	if mute {
		f, err = openLocked(path)
	}
	if err != nil {
		return nil, types.Errorf(types.ErrPermission, "Lock", path, "%w", err)
	}
	kind := int16(unix.F_WRLCK)
	if mute { // a lock for writing needs a file that is open for it: this one keeps out whoever wants that, the other one our like
		kind = unix.F_RDLCK
		err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB)
	}
	if err == nil {
		err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: kind})
	}
	if err == nil {
		return &Lock{f: f, mute: mute}, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, nil
	}
	return nil, types.Errorf(types.ErrInternal, "Lock", path, "%w", err)
}

// openLocked opens for reading what is locked for path: where nothing can be made and there is no file, the directory.
func openLocked(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0) // a pipe of that name would keep us for ever
	if errors.Is(err, os.ErrNotExist) {
		return os.Open(filepath.Dir(path))
	}
	return f, err
}

// Close gives the lock back.
func (l *Lock) Close() error { return l.f.Close() }

// LockHolder reports whether somebody holds the lock on path, and who. It only asks, and never holds
// the lock itself, not even for a moment. The PID is 0 while the holder has not yet written its note.
func LockHolder(path string) (info LockInfo, held bool, err error) {
	f, err := openLocked(path)
	if errors.Is(err, os.ErrNotExist) {
		return info, false, nil
	}
	if err != nil {
		return info, false, types.Errorf(types.ErrPermission, "Lock", path, "%w", err)
	}
	defer f.Close()
	q := unix.Flock_t{Type: unix.F_WRLCK}
	if err := unix.FcntlFlock(f.Fd(), unix.F_OFD_GETLK, &q); err != nil {
		return info, false, types.Errorf(types.ErrInternal, "Lock", path, "%w", err)
	}
	if q.Type == unix.F_UNLCK {
		return info, false, nil
	}
	if q.Type == unix.F_RDLCK { // whoever holds it could write no note: there may be that of an earlier one
		info.PID, _ = strconv.Atoi(durable.LockHolder(f))
		info.mute, info.path = true, path
		return info, true, nil
	}
	note, _ := io.ReadAll(io.LimitReader(f, 4<<10))
	_ = json.Unmarshal(note, &info) // a note that is half written tells nothing yet
	info.path = path
	return info, true, nil
}
