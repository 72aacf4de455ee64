//go:build amd64 || arm64

package sandbox

import (
	"slices"

	"golang.org/x/sys/unix"
)

// namespaces are the flags of clone and unshare that make a namespace.
const namespaces = unix.CLONE_NEWNS | unix.CLONE_NEWCGROUP | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC | unix.CLONE_NEWUSER |
	unix.CLONE_NEWPID | unix.CLONE_NEWNET

// newestCall is the last system call that was looked at: file_setattr of Linux 6.17. Numbers from 424 on are those of every
// architecture.
const newestCall = 469

// The system calls that golang.org/x/sys does not name yet.
const (
	sysOpenTreeAttr = 467
	sysFileSetattr  = 469
)

// never are refused in every box: they reach into other programs, the kernel or file systems, or make what filters do not see.
var never = []int{
	unix.SYS_PTRACE, unix.SYS_PROCESS_VM_READV, unix.SYS_PROCESS_VM_WRITEV, unix.SYS_PROCESS_MADVISE, unix.SYS_KCMP, unix.SYS_PIDFD_GETFD,
	unix.SYS_MIGRATE_PAGES, unix.SYS_MOVE_PAGES,
	unix.SYS_KEYCTL, unix.SYS_ADD_KEY, unix.SYS_REQUEST_KEY,
	unix.SYS_BPF, unix.SYS_USERFAULTFD, unix.SYS_PERF_EVENT_OPEN, unix.SYS_FANOTIFY_INIT, unix.SYS_OPEN_BY_HANDLE_AT,
	unix.SYS_MOUNT, unix.SYS_UMOUNT2, unix.SYS_PIVOT_ROOT, unix.SYS_CHROOT, unix.SYS_OPEN_TREE, sysOpenTreeAttr, unix.SYS_MOVE_MOUNT,
	unix.SYS_FSOPEN, unix.SYS_FSCONFIG, unix.SYS_FSMOUNT, unix.SYS_FSPICK, unix.SYS_MOUNT_SETATTR, unix.SYS_SETNS,
	unix.SYS_KEXEC_LOAD, unix.SYS_KEXEC_FILE_LOAD, unix.SYS_INIT_MODULE, unix.SYS_FINIT_MODULE, unix.SYS_DELETE_MODULE,
	unix.SYS_SWAPON, unix.SYS_SWAPOFF, unix.SYS_REBOOT, unix.SYS_ACCT, unix.SYS_QUOTACTL, unix.SYS_QUOTACTL_FD, unix.SYS_SETTIMEOFDAY,
	unix.SYS_CLOCK_SETTIME, unix.SYS_SETHOSTNAME, unix.SYS_SETDOMAINNAME, unix.SYS_SYSLOG, unix.SYS_VHANGUP,
	unix.SYS_LSM_SET_SELF_ATTR, sysFileSetattr,
}

// absent look as if the kernel did not have them, so that programs do without: rings make sockets that filters do not see, and
// the others have their flags or modes in memory, where a filter cannot look.
var absent = []int{unix.SYS_IO_URING_SETUP, unix.SYS_IO_URING_ENTER, unix.SYS_IO_URING_REGISTER, unix.SYS_CLONE3, unix.SYS_OPENAT2}

// sharedMemory are kinds of communication that belong to an IPC namespace, which Landlock does not give.
var sharedMemory = []int{
	unix.SYS_SHMGET, unix.SYS_SHMAT, unix.SYS_SHMCTL, unix.SYS_SEMGET, unix.SYS_SEMCTL, unix.SYS_SEMOP, unix.SYS_SEMTIMEDOP,
	unix.SYS_MSGGET, unix.SYS_MSGCTL, unix.SYS_MSGSND, unix.SYS_MSGRCV, unix.SYS_MQ_OPEN, unix.SYS_MQ_UNLINK,
}

// attributes change extended attributes, also of files that Landlock keeps from being written.
var attributes = []int{
	unix.SYS_SETXATTR, unix.SYS_LSETXATTR, unix.SYS_FSETXATTR, unix.SYS_REMOVEXATTR, unix.SYS_LREMOVEXATTR, unix.SYS_FREMOVEXATTR,
	unix.SYS_SETXATTRAT, unix.SYS_REMOVEXATTRAT,
}

// filtered is what a filter depends on.
type filtered struct {
	rung             Rung
	network, sockets bool
	single           bool // no other process is started
}

// filter returns the seccomp program of a plan.
func filter(f filtered) []unix.SockFilter {
	rung, network, sockets := f.rung, f.network, f.sockets
	var calls []call
	all := func(numbers []int, result uint32) {
		for _, n := range numbers {
			calls = append(calls, call{number: n, last: result})
		}
	}
	all(never, denied)
	all(neverHere, denied)
	all(absent, unknown)
	if rung == RungLandlock {
		all(sharedMemory, unknown)
		all(attributes, noAttr)
		calls = append(calls, otherProcesses()...)
	}
	clone := call{unix.SYS_CLONE, []test{hasAny(0, namespaces, denied)}, allow}
	if f.single {
		clone.tests = append(clone.tests, masked(0, unix.CLONE_THREAD, 0, denied))
		all(forks, denied)
	}
	calls = append(calls, clone,
		call{unix.SYS_UNSHARE, []test{hasAny(0, namespaces|unix.CLONE_NEWTIME, denied)}, allow},
		socketCall(network || rung == RungBwrap, sockets), // bubblewrap gives a network with nothing but a loopback
		// A pair of datagram sockets can be sent from to any address; the other kinds are connected for good.
		call{unix.SYS_SOCKETPAIR, []test{
			isNot(0, unix.AF_UNIX, denied), masked(1, 0xf, unix.SOCK_STREAM, allow), masked(1, 0xf, unix.SOCK_SEQPACKET, allow),
		}, denied},
		call{unix.SYS_IOCTL, []test{is(1, unix.TIOCSTI, denied), is(1, unix.TIOCLINUX, denied), is(1, unix.TIOCSETD, denied)}, allow},
		call{unix.SYS_PRLIMIT64, []test{is(0, 0, allow), {2, true, allBits, true, 0, denied}, is(2, 0, allow)}, denied},
	)
	// A file that gives its owner's rights to whoever runs it would work outside.
	for number, mode := range setuidModes {
		calls = append(calls, call{number, []test{hasAny(mode, unix.S_ISUID, denied)}, allow})
	}
	for number, flags := range setuidOpens {
		calls = append(calls, call{number, []test{
			masked(flags, unix.O_CREAT|unix.O_TMPFILE&^unix.O_DIRECTORY, 0, allow), hasAny(flags+1, unix.S_ISUID, denied),
		}, allow})
	}
	slices.SortFunc(calls, func(a, b call) int { return a.number - b.number })
	return assemble(auditArch, x32Bit, newestCall, calls)
}

// socketCall lets sockets be made of the families that are given, and those that ask the kernel for addresses and routes.
func socketCall(network, sockets bool) call {
	var tests []test
	if network {
		tests = append(tests, is(0, unix.AF_INET, allow), is(0, unix.AF_INET6, allow))
	}
	if sockets {
		tests = append(tests, is(0, unix.AF_UNIX, allow))
	}
	return call{unix.SYS_SOCKET, append(tests, isNot(0, unix.AF_NETLINK, denied), is(2, unix.NETLINK_ROUTE, allow)), denied}
}

// otherProcesses refuse what changes how another process of the same user runs, where all processes are within reach.
func otherProcesses() []call {
	self := func(number int) call { return call{number, []test{is(0, 0, allow)}, denied} }
	const ioprioProcess = 1 // IOPRIO_WHO_PROCESS
	return []call{
		self(unix.SYS_SCHED_SETAFFINITY), self(unix.SYS_SCHED_SETSCHEDULER), self(unix.SYS_SCHED_SETPARAM), self(unix.SYS_SCHED_SETATTR),
		{unix.SYS_SETPRIORITY, []test{isNot(0, unix.PRIO_PROCESS, denied), is(1, 0, allow)}, denied},
		{unix.SYS_IOPRIO_SET, []test{isNot(0, ioprioProcess, denied), is(1, 0, allow)}, denied},
	}
}
