//go:build amd64 || arm64

package sandbox

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"golang.org/x/sys/unix"
)

// supported says that this system can have boxes.
const supported = true

// checkInside tries in a box what it must allow and what it must refuse, and returns 0 if both are so.
func checkInside(args []string) int {
	const want = 4
	if len(args) != want {
		fmt.Fprintln(os.Stderr, heldNot+"wrong arguments")
		return 1
	}
	rung, inside, secret := Rung(args[0]), args[1], args[2]
	outside, _ := strconv.Atoi(args[3])
	for _, c := range []struct {
		what string
		held bool
	}{
		{"the work directory cannot be written", os.WriteFile(filepath.Join(inside, "file"), []byte("x"), 0o600) == nil},
		{"a hidden file can be read", !readable(secret)},
		{"a file can be made outside of the work directory", os.WriteFile(filepath.Join(filepath.Dir(secret), "file"), nil, 0o600) != nil},
		{"a Unix socket can be made", !socket(unix.AF_UNIX)},
		{"a packet socket can be made", !socket(unix.AF_PACKET)},
		{"a network socket can be made", rung == RungBwrap || !socket(unix.AF_INET)},
		{"a namespace can be made", unix.Unshare(unix.CLONE_NEWUSER) == unix.EPERM},
		{"another program can be signalled", alone(rung, outside)},
		{"io_uring can be used", ring() == unix.ENOSYS},
		{"it has capabilities", !capable()},
		{"it can get new privileges", noNewPrivileges()},
	} {
		if !c.held {
			fmt.Fprintln(os.Stderr, heldNot+c.what)
			return 1
		}
	}
	return 0
}

func readable(path string) bool {
	_, err := os.ReadFile(path)
	return err == nil
}

func socket(family int) bool {
	fd, err := unix.Socket(family, unix.SOCK_DGRAM, 0)
	if err == nil {
		_ = unix.Close(fd)
	}
	return err == nil
}

// alone says whether no process outside can be signalled. In a PID namespace this one has a small number, and there are no others.
func alone(rung Rung, outside int) bool {
	if rung == RungBwrap {
		const few = 10
		return os.Getpid() < few
	}
	return unix.Kill(outside, 0) == unix.EPERM
}

func ring() error {
	_, _, e := unix.Syscall(unix.SYS_IO_URING_SETUP, 1, 0, 0)
	return e
}

func capable() bool {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var have, none [2]unix.CapUserData
	return unix.Capget(&header, &have[0]) != nil || have != none
}

func noNewPrivileges() bool {
	on, err := unix.PrctlRetInt(unix.PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0)
	return err == nil && on == 1
}
