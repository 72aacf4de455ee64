package proc

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"rnix/types"
)

// Why nothing is said of who is at the other end of a connection.
var (
	// ErrUnseen is that the processes that have it cannot be seen: they have ended, or keep others from looking at them.
	ErrUnseen = errors.New("the process that calls cannot be seen: it has ended, or keeps others from looking at it")
	// ErrOtherUser is that another user has it.
	ErrOtherUser = errors.New("another user calls")
	// ErrOutside is that a process has it that works for no agent.
	ErrOutside = errors.New("the process that calls runs inside no agent")
	// ErrAdrift is that a process has it that has left the agent which started it, or that nobody can say what it works for.
	ErrAdrift = errors.New("the process that calls has left its agent")
	// ErrShared is that processes of several agents have it, or more processes than anybody looks at.
	ErrShared = errors.New("processes of several agents, or too many, have the connection")
)

// tcpRow is a line of the kernel's table of TCP sockets.
type tcpRow struct{ local, remote, state, uid, inode string }

// listening is the state of a socket that listens, in the table.
const listening = "0A"

// findTCP returns the first row that is meant, in the tables of this network namespace. An address in a row is as tableAddr writes it.
func findTCP(meant func(row tcpRow, six bool) bool) (tcpRow, bool) {
	for _, six := range []bool{false, true} {
		name := "tcp"
		if six {
			name = "tcp6"
		}
		f, err := os.Open(filepath.Join("/proc/self/net", name))
		if err != nil {
			continue
		}
		for lines := bufio.NewScanner(f); lines.Scan(); {
			field := strings.Fields(lines.Text()) // see proc_pid_net(5): sl, local, remote, st, queues, timer, retrnsmt, uid, timeout, inode
			if len(field) < 10 {
				continue
			}
			if row := (tcpRow{field[1], field[2], field[3], field[7], field[9]}); meant(row, six) {
				_ = f.Close() // nothing was written
				return row, true
			}
		}
		_ = f.Close() // nothing was written
	}
	return tcpRow{}, false
}

// OtherEnd returns the inode of the socket at the other end of a TCP connection of this machine, which has to be this user's. It fails with ErrUnseen
// or ErrOtherUser.
func OtherEnd(c net.Conn) (inode string, err error) {
	local, lerr := netip.ParseAddrPort(c.LocalAddr().String())
	remote, rerr := netip.ParseAddrPort(c.RemoteAddr().String())
	if lerr != nil || rerr != nil {
		return "", ErrUnseen
	}
	row, ok := findTCP(func(row tcpRow, six bool) bool {
		return row.local == tableAddr(remote, six) && row.remote == tableAddr(local, six)
	})
	switch {
	case !ok:
		return "", ErrUnseen
	case row.uid != strconv.Itoa(os.Geteuid()):
		return "", ErrOtherUser
	case row.inode == "0": // nobody has it any more
		return "", ErrUnseen
	}
	return row.inode, nil
}

// CheckListener fails unless a socket of this user listens at just this address of this machine: with ErrOtherUser, or with ErrUnseen if there is none.
func CheckListener(at netip.AddrPort) error {
	row, ok := findTCP(func(row tcpRow, six bool) bool { return row.state == listening && row.local == tableAddr(at, six) })
	switch {
	case !ok:
		return ErrUnseen
	case row.uid != strconv.Itoa(os.Geteuid()):
		return ErrOtherUser
	}
	return nil
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

// Holders returns the processes, of some or of all, that have a socket open.
func Holders(inode string, among []int) (pids []int) {
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

const (
	// looks is how often it is looked who has a connection: a program that starts another shares it with that for a moment.
	looks = 5
	// maxHolders is how many processes may have a connection: more than a program starts at once.
	maxHolders = 64
)

// OwnerOfOther returns the one agent for which all processes work that have the other end of a TCP connection of this machine. owner says it of each, as
// Manager.Owner does. It fails with ErrUnseen, ErrOtherUser, ErrOutside, ErrAdrift or ErrShared. What it says is of the moment: who has the
// connection can hand it on, as it can hand on what it reads.
func OwnerOfOther(c net.Conn, owner func(pid int) (types.PID, bool)) (of types.PID, err error) {
	for range looks {
		inode, ierr := OtherEnd(c)
		if ierr != nil {
			return 0, ierr
		}
		holders := func(among []int) []int { return Holders(inode, among) }
		if of, err = ownerOfAll(holders, identityOf, owner); !errors.Is(err, ErrUnseen) && !errors.Is(err, ErrAdrift) { // these two are also one that is just ending
			return of, err
		}
	}
	return 0, err
}

// ownerOfAll returns for which one agent all work that holders returns, of some or of all. A PID that was another's while it was looked whose it is
// counts for nothing: which process it is must be the same before and after that, and that one must have the socket.
func ownerOfAll(holders func(among []int) []int, which func(pid int) identity, owner func(pid int) (types.PID, bool)) (of types.PID, err error) {
	pids := holders(nil)
	switch {
	case len(pids) == 0:
		return 0, ErrUnseen
	case len(pids) > maxHolders:
		return 0, ErrShared
	}
	was := make([]identity, len(pids))
	for i, pid := range pids {
		was[i] = which(pid)
	}
	for i, pid := range pids {
		who, inside := owner(pid)
		switch {
		case !inside:
			return 0, ErrOutside
		case who == 0:
			return 0, ErrAdrift
		case i > 0 && who != of:
			return 0, ErrShared
		}
		of = who
	}
	if len(holders(pids)) != len(pids) {
		return 0, ErrUnseen
	}
	for i, pid := range pids {
		if was[i].Start == 0 || which(pid) != was[i] {
			return 0, ErrUnseen
		}
	}
	return of, nil
}
