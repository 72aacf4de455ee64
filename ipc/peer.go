package ipc

import (
	"context"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// Peer is who has made a connection. One that came over a channel or a road is whose that is, and has no PID. Else it is a process: the UID is as the system says. Whom the process works for is settled once
// for a connection, by Settle: it may end and leave the connection to others, and its PID may be another's then.
type Peer struct {
	UID uint32
	PID int

	known   settled  // whose it is, of a connection over a channel or a road; nil = over the socket
	road    bool     // it came over a road
	process *os.File // a pidfd, which nobody else's process can take the place of; nil = the system has none, or it has been settled
	gone    bool     // it had ended when its connection was accepted

	once   sync.Once
	owner  types.PID // what Settle has found
	inside bool
}

// settled is that of which it is known whose it is.
type settled interface {
	peer() (owner types.PID, inside bool)
}

// Settle asks find, at the first call, for the agent that the process with a PID works for, and returns that for the life of the
// connection. Nobody who has ended by then is asked for: owner is 0 and inside is true, as for whoever has left its agent. On a
// system without pidfds of peers (Linux before 6.5) the PID is taken for that of who has connected. Safe for concurrent use.
//
// Over a channel or a road nobody is asked: the owner is the process whose it is, until that has ended, and then 0.
func (p *Peer) Settle(find func(pid int) (owner types.PID, inside bool)) (owner types.PID, inside bool) {
	if p.known != nil {
		return p.known.peer()
	}
	p.once.Do(func() {
		p.owner, p.inside = 0, true
		if p.gone || p.PID <= 0 { // or it is in a place that is not for us to see
			return
		}
		owner, inside := find(p.PID)
		if p.process == nil || living(p.process) { // else what was found is of somebody else
			p.owner, p.inside = owner, inside
		}
		if p.process != nil {
			_ = p.process.Close() // it was only looked at
			p.process = nil
		}
	})
	return p.owner, p.inside
}

// living reports whether the process of a pidfd has not ended, or has and its PID is still its own.
func living(process *os.File) bool {
	return unix.PidfdSendSignal(int(process.Fd()), 0, nil, 0) == nil
}

// nobody is the peer of a connection whose other end the system does not tell.
const nobody = ^uint32(0)

type peerKey struct{}

func withPeer(ctx context.Context, c net.Conn) context.Context {
	switch cc := c.(type) {
	case *channelConn: // ours has made both ends
		return context.WithValue(ctx, peerKey{}, &Peer{UID: uint32(os.Geteuid()), known: cc.channel})
	case *innerConn:
		return context.WithValue(ctx, peerKey{}, &Peer{UID: uint32(os.Geteuid()), known: cc.of, road: true})
	case *roadConn:
		return context.WithValue(ctx, peerKey{}, &Peer{UID: uint32(os.Geteuid()), known: cc, road: true})
	}
	p, err := peerOf(c)
	if err != nil {
		p = &Peer{UID: nobody, gone: true}
	}
	return context.WithValue(ctx, peerKey{}, p)
}

// PeerOf asks the system who is at the other end of a connection through a Unix socket. Its Settle is called once, by whoever decides what the
// peer may do.
func PeerOf(c net.Conn) (*Peer, error) { return peerOf(c) }

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
	var cerr, ferr error
	fd := -1
	if err := raw.Control(func(socket uintptr) {
		fd, ferr = unix.GetsockoptInt(int(socket), unix.SOL_SOCKET, unix.SO_PEERPIDFD)
		cred, cerr = unix.GetsockoptUcred(int(socket), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return nil, err
	}
	p := new(Peer)
	switch ferr {
	case nil:
		unix.CloseOnExec(fd)
		p.process = os.NewFile(uintptr(fd), "peer") // closed by Settle, or when nobody has the connection any more
	case unix.ENOPROTOOPT:
	default: // ESRCH, EINVAL: it has ended
		p.gone = true
	}
	if cerr != nil {
		return nil, cerr
	}
	p.UID, p.PID = cred.Uid, int(cred.Pid)
	return p, nil
}
