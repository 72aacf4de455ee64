//go:build amd64 || arm64

package sandbox

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// attackWord makes the test program an attacker. It prints escaped if it could do what it must not.
const attackWord, escaped = "__attack", "ESCAPED"

// errHarmless is for calls that were allowed and had no effect.
var errHarmless = errors.New("it had no effect")

func attackInside(args []string) int {
	runtime.LockOSThread()
	if err := attackers[args[0]](args[1:]); err != nil {
		fmt.Println("refused:", err)
		return 1
	}
	fmt.Println(escaped, args[0])
	return 0
}

// raw6 makes a system call and returns its error.
func raw6(number uintptr, args ...uintptr) error {
	var a [6]uintptr
	copy(a[:], args)
	if _, _, e := unix.Syscall6(number, a[0], a[1], a[2], a[3], a[4], a[5]); e != 0 {
		return e
	}
	return nil
}

func cstring(s string) uintptr {
	p, _ := unix.BytePtrFromString(s)
	return uintptr(unsafe.Pointer(p))
}

func number(s string) int {
	n, _ := strconv.Atoi(s)
	return n
}

// any of several ways.
func anyOf(ways ...func() error) error {
	var errs []error
	for _, way := range ways {
		err := way()
		if err == nil {
			return nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// send connects to an address and sends a byte.
func send(family, kind, protocol int, to unix.Sockaddr) error {
	fd, err := unix.Socket(family, kind, protocol)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	if err := unix.Connect(fd, to); err != nil {
		return err
	}
	_, err = unix.Write(fd, []byte("x"))
	return err
}

// refusedCall attacks by a call that must be refused whatever it is given.
func refusedCall(number uintptr, args ...uintptr) func([]string) error {
	return func([]string) error {
		switch err := raw6(number, args...); err {
		case unix.EPERM, unix.ENOSYS, unix.EOPNOTSUPP:
			return err
		case nil:
			return nil
		default:
			fmt.Println("the kernel has looked at it:", err)
			return nil
		}
	}
}

// attackers return nil if they could do what they must not.
var attackers map[string]func([]string) error

func init() {
	attackers = map[string]func([]string) error{
		"unix":     func(a []string) error { return send(unix.AF_UNIX, unix.SOCK_STREAM, 0, &unix.SockaddrUnix{Name: a[0]}) },
		"unixgram": func(a []string) error { return send(unix.AF_UNIX, unix.SOCK_DGRAM, 0, &unix.SockaddrUnix{Name: a[0]}) },
		"seqpacket": func(a []string) error {
			return send(unix.AF_UNIX, unix.SOCK_SEQPACKET, 0, &unix.SockaddrUnix{Name: a[0]})
		},
		"pair": datagramPair,
		"tcp": func(a []string) error {
			return send(unix.AF_INET, unix.SOCK_STREAM, 0, &unix.SockaddrInet4{Port: number(a[0]), Addr: [4]byte{127, 0, 0, 1}})
		},
		"mptcp": func(a []string) error {
			return send(unix.AF_INET, unix.SOCK_STREAM, unix.IPPROTO_MPTCP, &unix.SockaddrInet4{Port: number(a[0]), Addr: [4]byte{127, 0, 0, 1}})
		},
		"tcp6": func(a []string) error {
			return send(unix.AF_INET6, unix.SOCK_STREAM, 0, &unix.SockaddrInet6{Port: number(a[0]), Addr: [16]byte{10: 0xff, 11: 0xff, 12: 127, 15: 1}})
		},
		"udp": func(a []string) error { // whether it arrives is looked at outside
			return noEffect(send(unix.AF_INET, unix.SOCK_DGRAM, 0, &unix.SockaddrInet4{Port: number(a[0]), Addr: [4]byte{127, 0, 0, 1}}))
		},
		"fastopen": func(a []string) error {
			fd, err := unix.Socket(unix.AF_INET, unix.SOCK_STREAM, 0)
			if err != nil {
				return err
			}
			return unix.Sendto(fd, []byte("x"), unix.MSG_FASTOPEN, &unix.SockaddrInet4{Port: number(a[0]), Addr: [4]byte{127, 0, 0, 1}})
		},
		"families":      families,
		"netlink":       func([]string) error { return made(unix.Socket(unix.AF_NETLINK, unix.SOCK_RAW, unix.NETLINK_SOCK_DIAG)) },
		"io_uring":      refusedCall(unix.SYS_IO_URING_SETUP, 1, 0),
		"ptrace":        func(a []string) error { return unix.PtraceAttach(number(a[0])) },
		"ptrace-seize":  func(a []string) error { return unix.PtraceSeize(number(a[0])) },
		"vm-read":       vmRead,
		"proc-mem":      func(a []string) error { return made2(os.OpenFile("/proc/"+a[0]+"/mem", os.O_RDWR, 0)) },
		"pidfd-getfd":   pidfdGetfd,
		"pidfd-signal":  pidfdSignal,
		"kill":          func(a []string) error { return unix.Kill(number(a[0]), unix.SIGTERM) },
		"kill-all":      func([]string) error { return noEffect(unix.Kill(-1, unix.SIGWINCH)) },
		"kill-group":    func(a []string) error { return unix.Kill(-number(a[0]), unix.SIGTERM) },
		"sigio":         sigio,
		"prlimit":       prlimit,
		"renice":        func(a []string) error { return unix.Setpriority(unix.PRIO_PROCESS, number(a[0]), 19) },
		"renice-user":   func([]string) error { return noEffect(unix.Setpriority(unix.PRIO_USER, os.Getuid(), 19)) },
		"affinity":      func(a []string) error { return unix.SchedSetaffinity(number(a[0]), &unix.CPUSet{1}) },
		"scheduler":     scheduler,
		"ioprio":        func(a []string) error { return raw6(unix.SYS_IOPRIO_SET, 1, uintptr(number(a[0])), 3<<13) },
		"keyctl":        refusedCall(unix.SYS_KEYCTL, 0, ^uintptr(3), 0),
		"add-key":       refusedCall(unix.SYS_ADD_KEY),
		"request-key":   refusedCall(unix.SYS_REQUEST_KEY),
		"bpf":           refusedCall(unix.SYS_BPF),
		"userfaultfd":   refusedCall(unix.SYS_USERFAULTFD, 1),
		"perf":          refusedCall(unix.SYS_PERF_EVENT_OPEN),
		"fanotify":      refusedCall(unix.SYS_FANOTIFY_INIT),
		"handle":        refusedCall(unix.SYS_OPEN_BY_HANDLE_AT),
		"mount":         mount,
		"umount":        func(a []string) error { return unix.Unmount(a[0], unix.MNT_DETACH) },
		"remount":       func(a []string) error { return unix.Mount("", a[0], "", unix.MS_REMOUNT|unix.MS_BIND, "") },
		"fsopen":        refusedCall(unix.SYS_FSOPEN, 0, 0),
		"open-tree":     refusedCall(unix.SYS_OPEN_TREE, ^uintptr(99), 0, 1),
		"move-mount":    refusedCall(unix.SYS_MOVE_MOUNT),
		"mount-setattr": refusedCall(unix.SYS_MOUNT_SETATTR),
		"pivot-root":    refusedCall(unix.SYS_PIVOT_ROOT),
		"chroot":        func(a []string) error { return unix.Chroot(a[0]) },
		"setns":         setns,
		"unshare":       func([]string) error { return unix.Unshare(unix.CLONE_NEWUSER) },
		"unshare-mount": func([]string) error { return unix.Unshare(unix.CLONE_NEWNS) },
		"unshare-time":  func([]string) error { return unix.Unshare(unix.CLONE_NEWTIME) },
		"clone-user":    cloneUser,
		"clone3":        refusedCall(unix.SYS_CLONE3),
		"modules":       refusedCall(unix.SYS_FINIT_MODULE),
		"init-module":   refusedCall(unix.SYS_INIT_MODULE),
		"kexec":         refusedCall(unix.SYS_KEXEC_LOAD),
		"kexec-file":    refusedCall(unix.SYS_KEXEC_FILE_LOAD),
		"swapon":        refusedCall(unix.SYS_SWAPON),
		"acct":          refusedCall(unix.SYS_ACCT),
		"syslog":        refusedCall(unix.SYS_SYSLOG, 3),
		"clock":         refusedCall(unix.SYS_CLOCK_SETTIME, 99),
		"hostname":      refusedCall(unix.SYS_SETHOSTNAME),
		"new-calls":     refusedCall(newestCall + 1),
		"tiocsti":       terminal(unix.TIOCSTI),
		"tioclinux":     terminal(unix.TIOCLINUX),
		"mknod":         mknod,
		"capset":        capset,
		"setuid":        func([]string) error { return changed(os.Getuid(), unix.Setresuid(1, 1, 1)) },
		"setgroups":     func([]string) error { return raw6(unix.SYS_SETGROUPS, 0, 0) },
		"euid":          euid,
		"setuid-file":   setuidFile,
		"x32":           func([]string) error { return raw6(0x40000000 | unix.SYS_GETPID) },
		"memfd":         memfd,
		"i386":          i386,
		"shm":           sharedSegment,
		"mqueue":        func(a []string) error { return raw6(unix.SYS_MQ_OPEN, cstring(a[0]), unix.O_RDWR, 0, 0) },
		"truncate":      func(a []string) error { return unix.Truncate(a[0], 0) },
		"xattr":         func(a []string) error { return unix.Setxattr(a[0], "user.rnix", []byte("x"), 0) },
		"swap":          swap,
		"link-race":     linkRace,
		"exe":           exe,
		"core":          core,
		"descriptors":   descriptors,
	}
}

func made(fd int, err error) error {
	if err == nil {
		_ = unix.Close(fd)
	}
	return err
}

// noEffect is for calls that may succeed; what they do is looked at outside.
func noEffect(err error) error {
	if err == nil {
		err = errHarmless
	}
	return err
}

func made2(f *os.File, err error) error {
	if err == nil {
		_ = f.Close()
	}
	return err
}

// changed says whether this user is another one than before.
func changed(was int, err error) error {
	if err == nil && os.Getuid() == was {
		return errHarmless
	}
	return err
}

// datagramPair sends from a socket that was not made by socket to one outside.
func datagramPair(a []string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	to := &unix.SockaddrUnix{Name: a[0]}
	return anyOf(func() error { return unix.Sendto(fds[0], []byte("x"), 0, to) }, func() error { return unix.Connect(fds[1], to) })
}

// families are all that are not asked for anywhere else; a socket of one of them must not be made.
func families([]string) error {
	var ways []func() error
	for family := range 50 {
		if family == unix.AF_UNIX || family == unix.AF_INET || family == unix.AF_INET6 || family == unix.AF_NETLINK {
			continue
		}
		for _, kind := range []int{unix.SOCK_STREAM, unix.SOCK_DGRAM, unix.SOCK_RAW, unix.SOCK_SEQPACKET} {
			ways = append(ways, func() error { return made(unix.Socket(family, kind, 0)) })
		}
	}
	return anyOf(ways...)
}

func vmRead(a []string) error {
	buf := make([]byte, 8)
	local := []unix.Iovec{{Base: &buf[0], Len: 8}}
	_, err := unix.ProcessVMReadv(number(a[0]), local, []unix.RemoteIovec{{Base: uintptr(0x400000), Len: 8}}, 0)
	if err == unix.EFAULT {
		err = nil // it was allowed to look
	}
	return err
}

func pidfdGetfd(a []string) error {
	fd, err := unix.PidfdOpen(number(a[0]), 0)
	if err != nil {
		return err
	}
	return made(unix.PidfdGetfd(fd, 0, 0))
}

func pidfdSignal(a []string) error {
	fd, err := unix.PidfdOpen(number(a[0]), 0)
	if err != nil {
		return err
	}
	return unix.PidfdSendSignal(fd, unix.SIGTERM, nil, 0)
}

// sigio has the kernel send SIGTERM to the victim when a pipe can be read.
func sigio(a []string) error {
	var p [2]int
	if err := unix.Pipe(p[:]); err != nil {
		return err
	}
	const setSignal = 10 // F_SETSIG
	for _, set := range [][2]int{{unix.F_SETOWN, number(a[0])}, {setSignal, int(unix.SIGTERM)}, {unix.F_SETFL, unix.O_ASYNC | unix.O_NONBLOCK}} {
		if _, err := unix.FcntlInt(uintptr(p[0]), set[0], set[1]); err != nil {
			return err
		}
	}
	if _, err := unix.Write(p[1], []byte("x")); err != nil {
		return err
	}
	return errHarmless // whether the victim lives is looked at outside
}

func prlimit(a []string) error {
	return unix.Prlimit(number(a[0]), unix.RLIMIT_NOFILE, &unix.Rlimit{Cur: 5, Max: 5}, nil)
}

func scheduler(a []string) error {
	const idle = 5 // SCHED_IDLE
	var zero int32
	attr := &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: idle}
	return anyOf(
		func() error {
			return raw6(unix.SYS_SCHED_SETSCHEDULER, uintptr(number(a[0])), idle, uintptr(unsafe.Pointer(&zero)))
		},
		func() error { return unix.SchedSetAttr(number(a[0]), attr, 0) },
	)
}

func mount(a []string) error {
	return anyOf(func() error { return unix.Mount("none", a[0], "tmpfs", 0, "") }, func() error { return unix.Mount("/", a[0], "", unix.MS_BIND|unix.MS_REC, "") })
}

func setns(a []string) error {
	var ways []func() error
	for _, pid := range append(a, "1") {
		for _, kind := range []string{"mnt", "user", "net", "pid"} {
			ways = append(ways, func() error {
				fd, err := unix.Open("/proc/"+pid+"/ns/"+kind, unix.O_RDONLY, 0)
				if err != nil {
					return err
				}
				return unix.Setns(fd, 0)
			})
		}
	}
	return anyOf(ways...)
}

func cloneUser([]string) error {
	pid, err := syscall.ForkExec("/bin/true", []string{"true"}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER}})
	if err == nil {
		_, err = syscall.Wait4(pid, nil, 0, nil)
	}
	return err
}

// terminal types into a terminal of its own, which the kernel would allow.
func terminal(request uintptr) func([]string) error {
	return func([]string) error {
		pty, err := unix.Open("/dev/ptmx", unix.O_RDWR, 0)
		if err != nil {
			pty = 0
		}
		return anyOf(func() error {
			x := byte('x')
			switch err := raw6(unix.SYS_IOCTL, uintptr(pty), request, uintptr(unsafe.Pointer(&x))); err {
			case unix.EPERM:
				return err
			default: // anything else comes from the driver of the terminal, behind the filter
				fmt.Println("the driver says:", err)
				return nil
			}
		}, func() error { return raw6(unix.SYS_IOCTL, 0, 1<<32|request, 0) })
	}
}

func mknod(a []string) error {
	path := filepath.Join(a[0], "disk")
	var ways []func() error
	for _, dev := range []uint64{unix.Mkdev(254, 0), unix.Mkdev(8, 0), unix.Mkdev(1, 1)} {
		ways = append(ways, func() error {
			_ = os.Remove(path)
			if err := unix.Mknod(path, unix.S_IFBLK|0o600, int(dev)); err != nil {
				return err
			}
			return made(unix.Open(path, unix.O_RDONLY, 0))
		})
	}
	return anyOf(ways...)
}

func capset([]string) error {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	all := [2]unix.CapUserData{{Effective: 1, Permitted: 1}}
	return unix.Capset(&header, &all[0])
}

// euid is what a setuid copy of this program finds.
func euid([]string) error {
	if os.Geteuid() == os.Getuid() {
		return errHarmless
	}
	return nil
}

// setuidFile makes a program with the rights of its owner, in all ways.
func setuidFile(a []string) error {
	path := filepath.Join(a[0], "setuid")
	if err := os.WriteFile(path, []byte("x"), 0o755); err != nil {
		return err
	}
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	const mode = unix.S_ISUID | 0o755
	in := func(name string) uintptr { return cstring(filepath.Join(a[0], name)) }
	how := unix.OpenHow{Flags: unix.O_CREAT | unix.O_WRONLY, Mode: mode}
	at := ^uintptr(99) // AT_FDCWD
	ways := []func() error{
		func() error { return unix.Fchmod(int(f.Fd()), mode) },
		func() error { return unix.Fchmodat(unix.AT_FDCWD, path, mode, 0) },
		func() error { return raw6(unix.SYS_FCHMODAT2, at, in("setuid"), mode, 0) },
		func() error { return raw6(unix.SYS_OPENAT, at, in("a"), unix.O_CREAT|unix.O_WRONLY, mode) },
		func() error { return raw6(unix.SYS_OPENAT, at, cstring(a[0]), unix.O_TMPFILE|unix.O_WRONLY, mode) },
		func() error {
			return raw6(unix.SYS_OPENAT2, at, in("b"), uintptr(unsafe.Pointer(&how)), unsafe.Sizeof(how))
		},
		func() error { return raw6(unix.SYS_MKNODAT, at, in("c"), unix.S_IFREG|mode, 0) },
	}
	return anyOf(append(ways, setuidOld(in, mode)...)...)
}

// memfd executes a copy of this program that has no path. It is confined, too.
func memfd(a []string) error {
	text, err := os.ReadFile("/proc/self/exe")
	if err != nil {
		return err
	}
	fd, err := unix.MemfdCreate("attack", unix.MFD_CLOEXEC)
	if err != nil {
		return err
	}
	if _, err := os.NewFile(uintptr(fd), "attack").Write(text); err != nil {
		return err
	}
	return unix.Exec("/proc/self/fd/"+strconv.Itoa(fd), append([]string{"attack", attackWord}, a...), os.Environ())
}

// i386 executes a program that asks for its number by the door of 32-bit programs, and ends well if it gets through.
func i386(a []string) error {
	if runtime.GOARCH != "amd64" {
		return errHarmless
	}
	code := []byte{
		0xb8, 20, 0, 0, 0, // mov eax, 20: getpid
		0xcd, 0x80, // int 0x80
		0xb8, 60, 0, 0, 0, // mov eax, 60: exit
		0x31, 0xff, // xor edi, edi
		0x0f, 0x05, // syscall
	}
	const base, headers = 0x400000, 120
	le := binary.LittleEndian
	elf := append([]byte("\x7fELF\x02\x01\x01\x00\x00\x00\x00\x00\x00\x00\x00\x00"), 2, 0, 62, 0, 1, 0, 0, 0)
	for _, v := range []uint64{base + headers, 64, 0} { // entry, program headers, section headers
		elf = le.AppendUint64(elf, v)
	}
	elf = append(elf, 0, 0, 0, 0, 64, 0, 56, 0, 1, 0, 0, 0, 0, 0, 0, 0)
	elf = append(elf, 1, 0, 0, 0, 5, 0, 0, 0)
	size := uint64(headers + len(code))
	for _, v := range []uint64{0, base, base, size, size, 0x1000} {
		elf = le.AppendUint64(elf, v)
	}
	path := filepath.Join(a[0], "i386")
	if err := os.WriteFile(path, append(elf, code...), 0o755); err != nil {
		return err
	}
	pid, err := syscall.ForkExec(path, []string{path}, nil)
	if err != nil {
		return err
	}
	var status syscall.WaitStatus
	if _, err := syscall.Wait4(pid, &status, 0, nil); err != nil {
		return err
	}
	if status.Signal() == unix.SIGSEGV {
		return errHarmless // this kernel has no such door
	}
	if status.Signal() != unix.SIGSYS {
		fmt.Println("it ended with", status)
		return nil
	}
	return unix.EPERM
}

// sharedSegment reads memory that the victim shares.
func sharedSegment(a []string) error {
	p, _, e := unix.Syscall(unix.SYS_SHMAT, uintptr(number(a[0])), 0, unix.SHM_RDONLY)
	if e != 0 {
		return e
	}
	fmt.Println(p)
	return nil
}

// swap exchanges a protected path with another one, for a while.
func swap(a []string) error {
	var ways []func() error
	for range 200 {
		ways = append(ways, func() error { return unix.Renameat2(unix.AT_FDCWD, a[0], unix.AT_FDCWD, a[1], unix.RENAME_EXCHANGE) })
	}
	return anyOf(ways...)
}

// linkRace has a name be a link to a secret and a file in turns, while it is read.
func linkRace(a []string) error {
	secret, name := a[0], filepath.Join(a[1], "race")
	stop := make(chan bool)
	done := make(chan bool)
	go func() {
		defer close(done)
		for i := 0; ; i++ {
			select {
			case <-stop:
				return
			default:
			}
			_ = os.Remove(name)
			if i%2 == 0 {
				_ = os.Symlink(secret, name)
			} else {
				_ = os.WriteFile(name, nil, 0o600)
			}
		}
	}()
	err := errHarmless
	for range 2000 {
		if text, e := os.ReadFile(name); e == nil && len(text) > 0 {
			err = nil
		}
	}
	close(stop)
	<-done
	return err
}

// exe writes to the programs that processes run, the first one's among them.
func exe(a []string) error {
	var ways []func() error
	for _, path := range append([]string{"/proc/1/exe", "/proc/self/exe", "/proc/" + strconv.Itoa(os.Getppid()) + "/exe"}, a...) {
		ways = append(ways, func() error { return made(unix.Open(path, unix.O_WRONLY, 0)) })
	}
	return anyOf(ways...)
}

func core([]string) error {
	var l unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &l); err != nil || l.Max > 0 {
		return err
	}
	return raw6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_CORE, uintptr(unsafe.Pointer(&unix.Rlimit{Cur: 1, Max: 1})), 0)
}

// descriptors looks for what it was not given.
func descriptors([]string) error {
	var ways []func() error
	for fd := 3; fd < 64; fd++ {
		ways = append(ways, func() error {
			to, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(fd))
			if err == nil && (to == "anon_inode:[eventpoll]" || to == "anon_inode:[eventfd]" || strings.HasPrefix(to, "/sys/fs/cgroup/")) {
				err = errHarmless // of the Go runtime
			}
			if err == nil {
				fmt.Println(fd, to)
			}
			return err
		})
	}
	return anyOf(ways...)
}
