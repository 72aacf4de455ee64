package ipc

import (
	"context"
	"net"
	"syscall"

	"golang.org/x/sys/unix"
)

// Peer is the process at the other end of a connection, as the system knew it when it connected. The
// PID may meanwhile be that of another process; the UID cannot lie.
type Peer struct {
	UID uint32
	PID int
}

// nobody is the peer of a connection whose other end the system does not tell.
const nobody = ^uint32(0)

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	p, err := peerOf(c)
	if err != nil {
		p = &Peer{UID: nobody}
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// peerOf asks the system who is at the other end of c. For the client of a listener that is whoever
// called listen.
func peerOf(c net.Conn) (*Peer, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, unix.ENOTSOCK
	}
	raw, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	var cred *unix.Ucred
	var cerr error
	if err := raw.Control(func(fd uintptr) {
		cred, cerr = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	if cerr != nil {
		return nil, cerr
	}
	return &Peer{UID: cred.Uid, PID: int(cred.Pid)}, nil
}
