package ipc

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"os"
	"path/filepath"
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
	lock *Lock
}

// Close stops listening, removes the socket and then gives the lock back.
func (l *listener) Close() error {
	return errors.Join(l.Listener.Close(), l.lock.Close())
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
	// On Linux the mode of an unbound socket becomes that of its file. Unlike a umask that
	// does not concern the files which others make in the meantime.
	lc := net.ListenConfig{Control: func(_, _ string, c syscall.RawConn) error {
		var merr error
		err := c.Control(func(fd uintptr) { merr = unix.Fchmod(int(fd), 0o600) })
		return errors.Join(err, merr)
	}}
	l, err := lc.Listen(context.Background(), "unix", socket)
	if err == nil {
		err = os.Chmod(socket, 0o600)
		if err != nil {
			_ = l.Close()
		}
	}
	if err != nil {
		_ = lock.Close()
		return nil, types.Errorf(types.ErrInternal, op, socket, "%w", cause(err))
	}
	return &listener{l, lock}, nil
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
