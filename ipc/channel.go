package ipc

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/proc"
	"rnix/runtime/env"
	"rnix/types"
)

// A channel is a pair of connected sockets (AF_UNIX, SOCK_SEQPACKET): the daemon has one end, and a child of the operating system that
// works for a process has inherited the other. A client sends channelAsk over it with one end of a pair of its own; the answer comes there:
// channelGiven with one end of a stream, on which the wire is spoken, or a word without one. So any number of clients share a channel, and
// the daemon reads and writes no socket whose settings another program can change.
const (
	channelAsk   = "connect"
	channelGiven = "connected"
	channelFull  = "full" // as many connections are open as a channel may have
)

// channelPrefix begins the address of a channel, which stands where the path of a socket stands, and is none: those begin with a slash.
const channelPrefix = "channel:"

// How long a client waits: for the daemon to answer over its channel, as commands wait for one that was never heard; and for a place among
// the connections.
const (
	channelPatience = 20 * time.Second
	fullPatience    = 10 * time.Second
)

// closedMend says what to do about a channel that did not arrive.
var closedMend = fmt.Sprintf("a program in between has closed what it had inherited: start rnix from the shell of the agent, or have descriptor %d kept "+
	"(Python: subprocess.run(..., pass_fds=[%d]))", proc.ChannelFD, proc.ChannelFD)

// Channel returns the address of the channel over which a program inside a process reaches its daemon; NewClient, Connect and Dial take it
// like the path of a socket. value is that of the variable env.ChannelVar, and dataDir the data directory of the daemon that is wanted. The
// address is empty if there is no such variable, or if it leads to the daemon of another data directory. It fails with UNAVAILABLE if the
// descriptor is not open or no channel, and says what to do; the daemon may still be reached over its socket then.
func Channel(value, dataDir string) (address string, err error) {
	if value == "" {
		return "", nil
	}
	number, dir, _ := strings.Cut(value, ":")
	fd, err := strconv.Atoi(number)
	if err != nil || fd < 3 || !filepath.IsAbs(dir) {
		return "", types.Errorf(types.ErrInvalid, "Connect", env.ChannelVar, "invalid value %q: rnix sets it to the number of a descriptor and a directory, and nothing else may", value)
	}
	if dir != filepath.Clean(dataDir) {
		return "", nil
	}
	if err := checkSocketKind(fd, unix.SOCK_SEQPACKET); err != nil {
		return "", types.Errorf(types.ErrUnavailable, "Connect", env.ChannelVar, "descriptor %d is not the channel to the daemon (%w); %s", fd, err, closedMend)
	}
	return channelPrefix + strconv.Itoa(fd), nil
}

// Nearest returns the address of the channel that this program has inherited, that of road (host:port) if it has none, and socket if there is neither.
// Unlike Inherited it needs no variable: command lines of agents start their MCP servers with an environment of their own.
func Nearest(socket, road string) string {
	switch {
	case checkSocketKind(proc.ChannelFD, unix.SOCK_SEQPACKET) == nil:
		return channelPrefix + strconv.Itoa(proc.ChannelFD)
	case road != "":
		return roadPrefix + road
	}
	return socket
}

// within reports whether this program runs inside an agent, as far as it can tell: in a box it sees nobody above it.
func within() bool {
	_, inside := proc.Within(os.Getpid())
	return inside || os.Getenv(env.ChannelVar) != "" || os.Getenv(env.RoadVar) != ""
}

// checkSocketKind checks that a descriptor is a connected Unix socket of a type.
func checkSocketKind(fd, kind int) error {
	domain, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_DOMAIN)
	switch {
	case err == unix.EBADF:
		return errors.New("it is closed")
	case err != nil || domain != unix.AF_UNIX:
		return errors.New("it is something else")
	}
	if of, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_TYPE); err != nil || of != kind {
		return errors.New("it is a socket of another type")
	}
	return nil
}

// channelOf returns the descriptor of a channel's address.
func channelOf(address string) (fd int, ok bool) {
	number, ok := strings.CutPrefix(address, channelPrefix)
	if !ok {
		return 0, false
	}
	fd, err := strconv.Atoi(number)
	return fd, err == nil && fd >= 0
}

// dialChannel gets a connection over a channel.
func dialChannel(ctx context.Context, channel int, address string) (net.Conn, error) {
	const op = "Connect"
	patience := time.NewTimer(fullPatience)
	defer patience.Stop()
	for wait := 5 * time.Millisecond; ; wait = min(2*wait, 200*time.Millisecond) {
		conn, err := askChannel(ctx, channel)
		switch {
		case err == nil:
			return conn, nil
		case ctx.Err() != nil:
			return nil, broken(ctx, op, address, err)
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, types.Errorf(types.ErrTimeout, op, address, "the daemon has not answered for %s over the channel of this process; is it stopped?", channelPatience)
		case !errors.Is(err, errFull):
			return nil, types.Errorf(types.ErrUnavailable, op, address, "the channel of this process has ended (%s): the daemon has stopped, or the command to which the channel was given has ended; nothing can be reached from here any more", err)
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
		case <-patience.C:
			return nil, types.Errorf(types.ErrExhausted, op, address, "the channel of this process has no room for another connection (at most %d); end commands that run beside this one, such as rnix watch", maxPerChannel)
		}
	}
}

// errFull is that a channel has, or the daemon, no room for another connection.
var errFull = errors.New("no room for another connection")

// askChannel asks once for a connection.
func askChannel(ctx context.Context, channel int) (net.Conn, error) {
	pair, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC|unix.SOCK_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	ours := os.NewFile(uintptr(pair[0]), "answer")
	defer ours.Close()
	err = unix.Sendmsg(channel, []byte(channelAsk), unix.UnixRights(pair[1]), nil, unix.MSG_NOSIGNAL|unix.MSG_DONTWAIT)
	_ = unix.Close(pair[1]) // the daemon has it, or nobody
	switch err {
	case nil:
	case unix.EAGAIN, unix.ENOBUFS, unix.ETOOMANYREFS: // too much is waiting for the daemon
		return nil, errFull
	default:
		return nil, err
	}
	_ = ours.SetReadDeadline(time.Now().Add(channelPatience)) // sockets have deadlines
	defer context.AfterFunc(ctx, func() { _ = ours.SetReadDeadline(time.Unix(1, 0)) })()
	var word string
	var got []int
	raw, err := ours.SyscallConn()
	if err != nil {
		return nil, err
	}
	if rerr := raw.Read(func(fd uintptr) bool {
		word, got, err = receive(int(fd))
		return err != unix.EAGAIN
	}); rerr != nil {
		return nil, rerr
	}
	switch {
	case err != nil:
	case word == channelGiven && len(got) == 1:
		f := os.NewFile(uintptr(got[0]), "connection")
		defer f.Close()
		return net.FileConn(f)
	case word == channelFull:
		err = errFull
	case word == "" && len(got) == 0:
		err = errors.New("it was not answered")
	default:
		err = errors.New("the answer makes no sense")
	}
	dropAll(got)
	return nil, err
}

// maxRights is how many descriptors the kernel passes with one message (SCM_MAX_FD of Linux).
const maxRights = 253

// receive takes one message from a socket, with the descriptors that came with it, which the caller closes. It does not wait: the error is
// EAGAIN then. A message that is longer than any of ours comes cut, and so is none.
func receive(fd int) (text string, descriptors []int, err error) {
	var word [32]byte
	oob := make([]byte, unix.CmsgSpace(4*maxRights))
	var n, oobn int
	for {
		n, oobn, _, _, err = unix.Recvmsg(fd, word[:], oob, unix.MSG_DONTWAIT|unix.MSG_CMSG_CLOEXEC)
		if err != unix.EINTR {
			break
		}
	}
	if err != nil {
		return "", nil, err
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	for i := range messages {
		if fds, perr := unix.ParseUnixRights(&messages[i]); perr == nil {
			descriptors = append(descriptors, fds...)
		}
	}
	return string(word[:n]), descriptors, err
}

// dropAll closes descriptors that came from another program. A socket that lingers would make the close wait as long as it was told to.
func dropAll(descriptors []int) {
	for _, fd := range descriptors {
		_ = unix.SetsockoptLinger(fd, unix.SOL_SOCKET, unix.SO_LINGER, &unix.Linger{}) // most are none
		_ = unix.Close(fd)
	}
}
