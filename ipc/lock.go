package ipc

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// LockInfo says who holds a lock. It is what a lock file contains; part of the on-disk format.
type LockInfo struct {
	V       int       `json:"v"` // 1
	PID     int       `json:"pid"`
	Socket  string    `json:"socket,omitempty"` // where the holder listens
	Started time.Time `json:"started"`
}

// Lock is a lock on a file, held until Close or until the process ends, however it ends. Lock files
// are never removed: the lock is on the open file, not on the name, and is not inherited.
type Lock struct{ f *os.File }

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
		return nil, types.Errorf(types.ErrConflict, "Lock", path, "a daemon runs already, as pid %d since %s; stop it with: rnix daemon stop",
			holder.PID, holder.Started.Local().Format(time.DateTime))
	}
	note, _ := json.Marshal(LockInfo{V: 1, PID: os.Getpid(), Socket: socket, Started: time.Now().Truncate(time.Second)})
	if err = l.f.Truncate(0); err == nil {
		_, err = l.f.WriteAt(append(note, '\n'), 0)
	}
	if err != nil {
		_ = l.Close()
		return nil, types.Errorf(types.ErrStorage, "Lock", path, "%w", err)
	}
	return l, nil
}

// tryLock takes the lock on path without a note. It returns nil if somebody else holds it.
func tryLock(path string) (*Lock, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, types.Errorf(types.ErrPermission, "Lock", path, "%w", err)
	}
	err = unix.FcntlFlock(f.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK})
	if err == nil {
		return &Lock{f}, nil
	}
	_ = f.Close()
	if errors.Is(err, unix.EAGAIN) || errors.Is(err, unix.EACCES) {
		return nil, nil
	}
	return nil, types.Errorf(types.ErrInternal, "Lock", path, "%w", err)
}

// Close gives the lock back.
func (l *Lock) Close() error { return l.f.Close() }

// LockHolder reports whether somebody holds the lock on path, and who. It only asks, and never holds
// the lock itself, not even for a moment. The PID is 0 while the holder has not yet written its note.
func LockHolder(path string) (info LockInfo, held bool, err error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
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
	note, _ := io.ReadAll(io.LimitReader(f, 4<<10))
	_ = json.Unmarshal(note, &info) // a note that is half written tells nothing yet
	return info, true, nil
}
