package mcpserve

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"

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
	errInside = types.Errorf(types.ErrPermission, opCaller, "", "a command of an agent may not call this server, which has the rights of a person; it has its own: rnix mcp serve")
	errUser   = types.Errorf(types.ErrPermission, opCaller, "", "this server is for the user that runs it")
	errHidden = types.Errorf(types.ErrPermission, opCaller, "", "the process that calls cannot be seen: it has ended, or keeps others from looking at it; let the server listen on a Unix socket instead, with --http unix:PATH")
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
	inode, err := otherEnd(c)
	if err != nil {
		return err
	}
	pids := holders(inode, nil)
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
	if len(holders(inode, pids)) != len(pids) { // one has ended, and its number may be another's
		return errHidden
	}
	return nil
}

// otherEnd returns the inode of the socket at the other end of a TCP connection of this machine, which has to be this user's.
func otherEnd(c net.Conn) (inode string, err error) {
	local, lerr := netip.ParseAddrPort(c.LocalAddr().String())
	remote, rerr := netip.ParseAddrPort(c.RemoteAddr().String())
	if lerr != nil || rerr != nil {
		return "", errHidden
	}
	for _, table := range []string{"tcp", "tcp6"} {
		f, err := os.Open(filepath.Join("/proc/self/net", table))
		if err != nil {
			continue
		}
		theirs, ours := tableAddr(remote, table == "tcp6"), tableAddr(local, table == "tcp6")
		lines := bufio.NewScanner(f)
		for lines.Scan() {
			row := strings.Fields(lines.Text()) // see proc_pid_net(5): sl, local, remote, st, queues, timer, retrnsmt, uid, timeout, inode
			if len(row) < 10 || row[1] != theirs || row[2] != ours {
				continue
			}
			_ = f.Close()
			switch {
			case row[7] != strconv.Itoa(os.Geteuid()):
				return "", errUser
			case row[9] == "0": // nobody has it any more
				return "", errHidden
			}
			return row[9], nil
		}
		_ = f.Close()
	}
	return "", errHidden
}

// tableAddr writes an address as the kernel's tables of sockets do: words in the order of the machine.
func tableAddr(a netip.AddrPort, six bool) string {
	var b strings.Builder
	raw := a.Addr().Unmap().AsSlice()
	if six {
		as16 := a.Addr().As16()
		raw = as16[:]
	}
	for ; len(raw) >= 4; raw = raw[4:] {
		fmt.Fprintf(&b, "%08X", binary.NativeEndian.Uint32(raw))
	}
	return fmt.Sprintf("%s:%04X", b.String(), a.Port())
}

// holders returns the processes, of some or of all, that have a socket open.
func holders(inode string, among []int) (pids []int) {
	if among == nil {
		entries, _ := os.ReadDir("/proc") // without it nobody is seen, and nobody let in
		for _, e := range entries {
			if pid, err := strconv.Atoi(e.Name()); err == nil {
				among = append(among, pid)
			}
		}
	}
	want := "socket:[" + inode + "]"
	for _, pid := range among {
		dir := filepath.Join("/proc", strconv.Itoa(pid), "fd")
		fds, _ := os.ReadDir(dir) // of others' processes it cannot be read
		if slices.ContainsFunc(fds, func(e os.DirEntry) bool {
			to, err := os.Readlink(filepath.Join(dir, e.Name()))
			return err == nil && to == want
		}) {
			pids = append(pids, pid)
		}
	}
	return pids
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
