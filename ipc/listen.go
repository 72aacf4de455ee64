package ipc

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"rnix/runtime/statehome"
	"rnix/types"
)

// The locks beside a socket.
func daemonLock(socket string) string { return socket + ".daemon" } // held by the daemon, all its life
func startLock(socket string) string  { return socket + ".lock" }   // held by the client that starts one

// listener is a Unix listener that holds the daemon's lock.
type listener struct {
	net.Listener
	socket string
	lock   *Lock

	mu sync.Mutex
	// +checklocks:mu
	file  fs.FileInfo    // of the socket as we have made it last
	again []net.Listener // +checklocks:mu
}

// Close stops listening, removes the socket if it is still ours, and then gives the lock back.
func (l *listener) Close() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	var errs []error
	if fi, err := os.Lstat(l.socket); err == nil && os.SameFile(fi, l.file) {
		errs = append(errs, os.Remove(l.socket))
	}
	for _, other := range l.again {
		errs = append(errs, other.Close())
	}
	return errors.Join(append(errs, l.Listener.Close(), l.lock.Close())...)
}

// twice may be closed by whoever accepts from it and with the listener in whose place it came.
type twice struct{ net.Listener }

func (l twice) Close() error {
	if err := l.Listener.Close(); !errors.Is(err, net.ErrClosed) {
		return err
	}
	return nil
}

// Relisten looks whether the socket of a listener that Listen has made is still where clients look for it. If it was removed, or something
// else was put there, it takes the place back and returns another listener, which ends with l; else nil. Connections that came to the old one stay.
func Relisten(l net.Listener) (net.Listener, error) {
	our, ok := l.(*listener)
	if !ok {
		return nil, nil
	}
	our.mu.Lock()
	defer our.mu.Unlock()
	fi, err := os.Lstat(our.socket)
	if err == nil && os.SameFile(fi, our.file) {
		return nil, nil
	}
	if err := statehome.CheckPrivateDir(filepath.Dir(our.socket)); err != nil { // it makes it anew
		return nil, err
	}
	beside := our.socket + ".new"
	if err := statehome.CheckSocketPath(beside); err != nil {
		beside = filepath.Join(filepath.Dir(our.socket), ".new")
	}
	if err := os.Remove(beside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, types.Errorf(types.ErrInternal, "Listen", beside, "%w", err)
	}
	other, err := bind(beside)
	if err != nil {
		return nil, err
	}
	if err = os.Rename(beside, our.socket); err == nil {
		fi, err = os.Lstat(our.socket)
	}
	if err != nil {
		_ = other.Close()
		return nil, types.Errorf(types.ErrInternal, "Listen", our.socket, "%w", err)
	}
	our.file, our.again = fi, append(our.again, twice{other})
	return twice{other}, nil
}

// Listen listens on socket for the daemon. The directory is made private, the daemon's lock is taken
// and held until the listener is closed, and only then a socket that a dead daemon has left behind
// is replaced. The socket has mode 0600 from its first moment. If a daemon holds the lock the error
// has the code CONFLICT and names its PID, even if that daemon does not answer.
func Listen(socket string) (net.Listener, error) {
	const op = "Listen"
	if err := statehome.CheckSocketPath(socket); err != nil {
		return nil, err
	}
	if err := statehome.CheckPrivateDir(filepath.Dir(socket)); err != nil {
		return nil, err
	}
	lock, err := TakeLock(daemonLock(socket), socket)
	if err != nil {
		return nil, err
	}
	if err := clearStale(socket); err != nil {
		_ = lock.Close()
		return nil, err
	}
	l, err := bind(socket)
	var fi fs.FileInfo
	if err == nil {
		if fi, err = os.Lstat(socket); err != nil {
			_ = l.Close()
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, types.Errorf(types.ErrInternal, op, socket, "%w", cause(err))
	}
	return &listener{Listener: l, socket: socket, lock: lock, file: fi}, nil
}

// bind makes a socket that only its owner can connect to, and listens on it. Closing it leaves the file.
func bind(socket string) (net.Listener, error) {
	// On Linux the mode of an unbound socket becomes that of its file. Unlike a umask that
	// does not concern the files which others make in the meantime.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var merr error
		err := c.Control(func(fd uintptr) { merr = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, merr)
	}}
	l, err := lc.Listen(context.Background(), "unix", socket)
	if err != nil {
		return nil, err
	}
	l.(*net.UnixListener).SetUnlinkOnClose(false) // another may stand in its place by then
	if err := os.Chmod(socket, 0o600); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// clearStale removes a socket on which nobody listens. Precondition: the daemon's lock is held.
func clearStale(socket string) error {
	const op = "Listen"
	fi, err := os.Lstat(socket)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil
	case err != nil:
		return types.Errorf(types.ErrInternal, op, socket, "%w", err)
	case fi.Mode().Type() != fs.ModeSocket:
		return types.Errorf(types.ErrConflict, op, socket, "is not a socket; move it away")
	}
	c, err := net.Dial("unix", socket)
	if err == nil {
		_ = c.Close()
	}
	if err == nil || !errors.Is(err, syscall.ECONNREFUSED) {
		return types.Errorf(types.ErrConflict, op, socket, "another program listens here and holds no lock of ours; stop it")
	}
	if err := os.Remove(socket); err != nil {
		return types.Errorf(types.ErrInternal, op, socket, "%w", err)
	}
	return nil
}
