package kernelmcp

import (
	"bufio"
	"encoding/binary"
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

// Why a caller is refused.
var (
	ErrUser   = types.Errorf(types.ErrPermission, "Caller", "", "this server is for the user that runs it")
	ErrHidden = types.Errorf(types.ErrPermission, "Caller", "", "the process that calls cannot be seen: it has ended, or keeps others from looking at it; let the server listen on a Unix socket instead, with --http unix:PATH")
)

// OtherEnd returns the inode of the socket at the other end of a TCP connection of this machine, which has to be this user's.
func OtherEnd(c net.Conn) (inode string, err error) {
	local, lerr := netip.ParseAddrPort(c.LocalAddr().String())
	remote, rerr := netip.ParseAddrPort(c.RemoteAddr().String())
	if lerr != nil || rerr != nil {
		return "", ErrHidden
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
				return "", ErrUser
			case row[9] == "0": // nobody has it any more
				return "", ErrHidden
			}
			return row[9], nil
		}
		_ = f.Close()
	}
	return "", ErrHidden
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
