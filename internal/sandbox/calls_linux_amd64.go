package sandbox

import "golang.org/x/sys/unix"

const (
	auditArch = unix.AUDIT_ARCH_X86_64
	x32Bit    = 0x40000000 // __X32_SYSCALL_BIT
)

// neverHere are refused, and exist on this architecture only.
var neverHere = []int{unix.SYS_IOPL, unix.SYS_IOPERM, unix.SYS_MODIFY_LDT, unix.SYS_USELIB}

// setuidModes have the argument with this number as the mode of a file.
var setuidModes = map[int]int{
	unix.SYS_CHMOD: 1, unix.SYS_FCHMOD: 1, unix.SYS_FCHMODAT: 2, unix.SYS_FCHMODAT2: 2, unix.SYS_CREAT: 1, unix.SYS_MKNOD: 1, unix.SYS_MKNODAT: 2,
}

// setuidOpens have the argument with this number as their flags, and after it the mode.
var setuidOpens = map[int]int{unix.SYS_OPEN: 1, unix.SYS_OPENAT: 2}

// forks make a process, besides clone, whose flags say whether it is a thread.
var forks = []int{unix.SYS_FORK, unix.SYS_VFORK}
