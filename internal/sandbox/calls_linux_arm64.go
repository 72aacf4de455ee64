package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_AARCH64
	x32Bit    = 0 // 32-bit programs have another architecture
)

// neverHere are refused, and exist on this architecture only.
var neverHere []int

// setuidModes have the argument with this number as the mode of a file.
var setuidModes = map[int]int{unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2, unix.SYS_MKNODAT: 2}

// setuidOpens have the argument with this number as their flags, and after it the mode.
var setuidOpens = map[int]int{unix.SYS_OPENAT: 2}

// forks make a process, besides clone, whose flags say whether it is a thread.
var forks []int
