package sandbox

import (
	"fmt"
	"os"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Rights of Landlock. Those for files are also valid for rules of single files.
const (
	landlockRun       = unix.LANDLOCK_ACCESS_FS_EXECUTE
	landlockReadFile  = unix.LANDLOCK_ACCESS_FS_READ_FILE
	landlockWriteFile = landlockReadFile | unix.LANDLOCK_ACCESS_FS_WRITE_FILE | unix.LANDLOCK_ACCESS_FS_TRUNCATE | unix.LANDLOCK_ACCESS_FS_IOCTL_DEV
	landlockReadDir   = landlockReadFile | unix.LANDLOCK_ACCESS_FS_READ_DIR
	landlockWriteDir  = landlockWriteFile | landlockReadDir | unix.LANDLOCK_ACCESS_FS_REMOVE_DIR | unix.LANDLOCK_ACCESS_FS_REMOVE_FILE |
		unix.LANDLOCK_ACCESS_FS_MAKE_DIR | unix.LANDLOCK_ACCESS_FS_MAKE_REG | unix.LANDLOCK_ACCESS_FS_MAKE_FIFO |
		unix.LANDLOCK_ACCESS_FS_MAKE_SYM | unix.LANDLOCK_ACCESS_FS_REFER
	// landlockAll is what a ruleset governs: without a rule it is refused. Devices and sockets are made by no command.
	landlockAll = landlockWriteDir | landlockRun | unix.LANDLOCK_ACCESS_FS_MAKE_CHAR | unix.LANDLOCK_ACCESS_FS_MAKE_BLOCK | unix.LANDLOCK_ACCESS_FS_MAKE_SOCK
)

// landlockABI returns the version of Landlock that the kernel offers, 0 without it.
func landlockABI() int {
	abi, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, 0, 0, unix.LANDLOCK_CREATE_RULESET_VERSION)
	if e != 0 {
		return 0
	}
	return int(abi)
}

// ruleset makes the rules that a command is to be confined by. Anything that cannot be enforced fully is an error.
func ruleset(rules []Rule, network bool) (*os.File, error) {
	if abi := landlockABI(); abi < minABI {
		return nil, fmt.Errorf("the kernel offers version %d of Landlock, and %d is needed", abi, minABI)
	}
	attr := unix.LandlockRulesetAttr{
		Access_fs: landlockAll, Scoped: unix.LANDLOCK_SCOPE_ABSTRACT_UNIX_SOCKET | unix.LANDLOCK_SCOPE_SIGNAL,
	}
	if !network {
		attr.Access_net = unix.LANDLOCK_ACCESS_NET_BIND_TCP | unix.LANDLOCK_ACCESS_NET_CONNECT_TCP
	}
	set, _, e := unix.Syscall(unix.SYS_LANDLOCK_CREATE_RULESET, uintptr(unsafe.Pointer(&attr)), unsafe.Sizeof(attr), 0)
	if e != 0 {
		return nil, fmt.Errorf("the rules of Landlock cannot be made: %w", e)
	}
	f := os.NewFile(set, "rules") // the kernel closes it when a program is executed
	for _, r := range rules {
		if err := addRule(int(set), r); err != nil {
			_ = f.Close()
			return nil, err
		}
	}
	return f, nil
}

// addRule adds one rule. Its path was resolved, so a link in it is one that was put there since.
func addRule(set int, r Rule) error {
	fd, err := unix.Openat2(unix.AT_FDCWD, r.Path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC | unix.O_NOFOLLOW, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == unix.ENOSYS { // a filter around this program
		fd, err = unix.Open(r.Path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0)
	}
	switch err {
	case nil:
	case unix.ENOENT, unix.EACCES:
		return nil // gone, or not this user's: nothing to allow
	default:
		return fmt.Errorf("the path %s, which the policy lets be used: %w", r.Path, err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return fmt.Errorf("the path %s: %w", r.Path, err)
	}
	directory := st.Mode&unix.S_IFMT == unix.S_IFDIR
	var access uint64
	switch {
	case r.Access == AccessWrite && directory:
		access = landlockWriteDir
	case r.Access == AccessWrite:
		access = landlockWriteFile
	case r.Access == AccessRead && directory:
		access = landlockReadDir
	case r.Access == AccessRead:
		access = landlockReadFile
	}
	if r.Run {
		access |= landlockRun
	}
	if access == 0 {
		return fmt.Errorf("a rule for %s that allows nothing", r.Path)
	}
	attr := unix.LandlockPathBeneathAttr{Allowed_access: access, Parent_fd: int32(fd)}
	if _, _, e := unix.Syscall6(unix.SYS_LANDLOCK_ADD_RULE, uintptr(set), unix.LANDLOCK_RULE_PATH_BENEATH, uintptr(unsafe.Pointer(&attr)), 0, 0, 0); e != 0 {
		return fmt.Errorf("the path %s cannot be allowed: %w", r.Path, e)
	}
	return nil
}
