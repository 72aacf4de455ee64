package sandbox

import (
	"golang.org/x/sys/unix"
)

// setuidOld are the calls with a mode that newer architectures do not have.
func setuidOld(in func(string) uintptr, mode uintptr) []func() error {
	return []func() error{
		func() error { return raw6(unix.SYS_CHMOD, in("setuid"), mode) },
		func() error { return raw6(unix.SYS_CREAT, in("d"), mode) },
		func() error { return raw6(unix.SYS_OPEN, in("e"), unix.O_CREAT|unix.O_WRONLY, mode) },
		func() error { return raw6(unix.SYS_MKNOD, in("f"), unix.S_IFREG|mode, 0) },
	}
}
