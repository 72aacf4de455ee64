package mcpserve

import (
	"context"
	"errors"
	"net"
	"net/http"
	"os"
	"slices"
	"sync"

	"rnix/internal/proc"
	"rnix/ipc"
	"rnix/types"
)

// Same reports of processes of the operating system whether each calls the daemon as this server does: from outside of all agents, or, for a
// server that runs inside an agent, from inside the same one. Its error says that it is not known.
type Same func(ctx context.Context, pids []int) ([]bool, error)

// caller is who has made a connection. It is looked at once, with the first request that has the token.
type caller struct {
	conn net.Conn
	peer *ipc.Peer // of a Unix socket; nil = of another

	once sync.Once
	err  error
}

type callerKey struct{}

// withCaller notes for requests who has connected.
func withCaller(ctx context.Context, c net.Conn) context.Context {
	who := &caller{conn: c}
	if _, unix := c.(*net.UnixConn); unix {
		var err error
		if who.peer, err = ipc.PeerOf(c); err != nil {
			who.peer = nil
		}
	}
	return context.WithValue(ctx, callerKey{}, who)
}

// check refuses a caller of another user, and one inside an agent that this server is not inside of: it would have more rights than the agent has.
// PERMISSION; UNAVAILABLE if it cannot be told.
func (c *caller) check(ctx context.Context, same Same) error {
	c.once.Do(func() {
		if _, unix := c.conn.(*net.UnixConn); unix {
			c.err = checkUnix(ctx, c.peer, same)
		} else {
			c.err = checkTCP(ctx, c.conn, same)
		}
	})
	return c.err
}

const opCaller = "Caller"

var (
	errUser   = types.Errorf(types.ErrPermission, opCaller, "", "this server is for the user that runs it")
	errHidden = types.Errorf(types.ErrPermission, opCaller, "", "%w; let the server listen on a Unix socket instead, with --http unix:PATH", proc.ErrUnseen)
	errInside = types.Errorf(types.ErrPermission, opCaller, "", "a command of an agent may not call this server, which has the rights of a person; it has its own: rnix mcp serve")
)

func checkUnix(ctx context.Context, p *ipc.Peer, same Same) error {
	if p == nil {
		return errHidden
	}
	if int(p.UID) != os.Geteuid() {
		return errUser
	}
	var failed error
	_, inside := p.Settle(func(pid int) (types.PID, bool) {
		is, err := same(ctx, []int{pid})
		failed = err
		return 0, err != nil || !is[0]
	})
	switch {
	case failed != nil:
		return failed
	case inside:
		return errInside
	}
	return nil
}

// checkTCP finds the processes that have the other end of a connection. All of them must be allowed to call: whoever has it can use it.
func checkTCP(ctx context.Context, c net.Conn, same Same) error {
	inode, err := proc.OtherEnd(c)
	switch {
	case errors.Is(err, proc.ErrOtherUser):
		return errUser
	case err != nil:
		return errHidden
	}
	pids := proc.Holders(inode, nil)
	if len(pids) == 0 {
		return errHidden
	}
	is, err := same(ctx, pids)
	if err != nil {
		return err
	}
	if slices.Contains(is, false) {
		return errInside
	}
	if len(proc.Holders(inode, pids)) != len(pids) { // one has ended, and its number may be another's
		return errHidden
	}
	return nil
}

// refuse answers a caller that may not call. The next request of its connection would fare no better.
func refuse(w http.ResponseWriter, err error) {
	status := http.StatusForbidden
	if types.CodeOf(err) != types.ErrPermission {
		status = http.StatusServiceUnavailable
	}
	w.Header().Set("Connection", "close")
	http.Error(w, err.Error(), status)
}

// Same implements Same by asking the daemon.
func (p *Processes) Same(ctx context.Context, pids []int) ([]bool, error) {
	if len(pids) > ipc.MaxSameCaller { // so many have one connection to hide who calls
		return nil, errHidden
	}
	r, err := call(ctx, p, ipc.SameCaller, ipc.SameCallerRequest{PIDs: pids})
	if err == nil && len(r.Same) != len(pids) {
		err = types.Errorf(types.ErrInternal, opCaller, "", "the daemon has not answered for each process")
	}
	return r.Same, err
}
