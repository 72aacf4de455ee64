package ipc

import (
	"context"
	"errors"
	"io/fs"
	"net"
	"net/netip"
	"path/filepath"
	"strings"
	"syscall"

	"rnix/internal/proc"
	"rnix/runtime/env"
	"rnix/types"
)

// roadPrefix begins the address of a road, which stands where the path of a socket stands, and is none: those begin with a slash.
const roadPrefix = "road:"

// Inherited returns the address over which a program inside a process reaches its daemon: that of its channel, or, if the descriptor did not arrive, of
// its road. NewClient, Connect and Dial take it like the path of a socket. lookup is of the program's variables, and dataDir the data directory of the
// daemon that is wanted. The address is empty if the program is inside of no process, or of one of another data directory's daemon. It fails with
// INVALID for a variable that Rnix did not set, and with UNAVAILABLE, and what to do, if there is neither; the daemon may still be reached over its socket then.
func Inherited(lookup func(name string) string, dataDir string) (address string, err error) {
	address, lack := Channel(lookup(env.ChannelVar), dataDir)
	if address != "" || types.CodeOf(lack) == types.ErrInvalid {
		return address, lack
	}
	address, err = roadIn(lookup(env.RoadVar), dataDir)
	if address != "" || err != nil {
		return address, err
	}
	return "", lack
}

// roadIn returns the address that the value of env.RoadVar names, if it leads to the daemon of this data directory.
func roadIn(value, dataDir string) (address string, err error) {
	if value == "" {
		return "", nil
	}
	at, dir, _ := strings.Cut(value, ":/")
	dir = "/" + dir
	if _, ok := roadOf(roadPrefix + at); !ok || dir == "/" {
		return "", types.Errorf(types.ErrInvalid, "Connect", env.RoadVar, "invalid value %q: rnix sets it to an address on the loopback and a directory, and nothing else may", value)
	}
	if dir != filepath.Clean(dataDir) {
		return "", nil
	}
	return roadPrefix + at, nil
}

// roadOf returns where a road leads, which is on this machine.
func roadOf(address string) (at netip.AddrPort, ok bool) {
	text, ok := strings.CutPrefix(address, roadPrefix)
	if !ok {
		return at, false
	}
	at, err := netip.ParseAddrPort(text)
	return at, err == nil && at.Addr().IsLoopback() && at.Port() != 0
}

// dialRoad connects over a road. Nothing is said to another user's program, which may have got the port.
func dialRoad(ctx context.Context, at netip.AddrPort, address string) (net.Conn, error) {
	const op = "Connect"
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", at.String())
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil, broken(ctx, op, address, err)
	case errors.Is(err, syscall.ECONNREFUSED):
		return nil, types.Errorf(types.ErrUnavailable, op, address, "the daemon does not listen here any more: it has stopped, or the agent CLI to which the address was given has ended; nothing can be reached from here any more")
	case errors.Is(err, fs.ErrPermission):
		return nil, types.Errorf(types.ErrPermission, op, address, "no connection can be made here, as in a sandbox without a network: %w", cause(err))
	default:
		return nil, types.Errorf(types.ErrUnavailable, op, address, "%w", cause(err))
	}
	if err := proc.CheckListener(at); err != nil {
		_ = conn.Close()
		return nil, types.Errorf(types.ErrPermission, op, address, "it cannot be told that your daemon listens here, and nothing was sent: %w", err)
	}
	return conn, nil
}
