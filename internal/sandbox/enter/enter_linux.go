//go:build amd64 || arm64

package enter

import (
	"syscall"
	"unsafe"
)

// What package syscall does not name. System calls from 424 on have the same number on every architecture.
const (
	sysCloseRange   = 436
	sysRestrictSelf = 446

	prSetNoNewPrivs     = 38
	prSetChildSubreaper = 36
	prCapBSetDrop       = 24
	prCapAmbient        = 47
	prCapAmbientClear   = 4

	capabilityVersion = 0x20080522 // _LINUX_CAPABILITY_VERSION_3
	closeOnExec       = 4          // CLOSE_RANGE_CLOEXEC
	setModeFilter     = 1          // SECCOMP_SET_MODE_FILTER
)

// Now does what Variable asks for, which ends this program: if the command is not executed, it ends with NotRun. Without the variable it does nothing, and neither in a
// program with the rights of another user, who has not asked for it. The caller is on a thread of its own, which is confined and executes the command.
func Now() {
	fd, ok := syscall.Getenv(Variable)
	if !ok || syscall.Getuid() != syscall.Geteuid() || syscall.Getgid() != syscall.Getegid() {
		return
	}
	says, err := run(fd)
	_, _ = syscall.Write(says, []byte(err.Error()+"\n"))
	syscall.Exit(NotRun)
}

// run returns only if the command was not executed, and to which descriptor to say why.
func run(text string) (says int, err error) {
	const stderr = 2
	fd := 0
	for _, c := range []byte(text) {
		if fd = 10*fd + int(c-'0'); c < '0' || c > '9' || fd > 1<<20 {
			return stderr, failure(Variable + "=" + text + ": this variable is set by rnix itself, to the number of a descriptor")
		}
	}
	if fd <= stderr {
		return stderr, failure(Variable + "=" + text + ": this variable is set by rnix itself, to the number of a descriptor from 3 on")
	}
	b, err := readAll(fd)
	if err != nil {
		return stderr, wrap("the job cannot be read", err)
	}
	j, err := Decode(b)
	if err != nil {
		return stderr, err
	}
	return j.Says, j.run()
}

// run returns only if the command was not executed.
func (j *Job) run() error {
	if j.Stderr > 0 {
		if err := syscall.Dup3(j.Stderr, 2, 0); err != nil {
			return wrap("standard error", err)
		}
	}
	inner, err := listen(j.Listen)
	if err != nil {
		return err
	}
	if err := syscall.Chdir(j.Dir); err != nil {
		return failure("the directory " + j.Dir + ": " + err.Error() + "; the policy may hide it")
	}
	if err := j.confine(); err != nil {
		return err
	}
	if err := j.sayRunning(inner); err != nil {
		return wrap("rnix does not wait for it any more", err)
	}
	return wrap(j.Path, syscall.Exec(j.Path, j.Args, j.Env))
}

// confine gives up rights in an order in which each step still can do what it needs.
func (j *Job) confine() error {
	if err := prctl(prSetNoNewPrivs, 1, 0); err != nil {
		return wrap("new privileges cannot be given up", err)
	}
	if j.Adopts {
		if err := prctl(prSetChildSubreaper, 1, 0); err != nil {
			return wrap("it cannot adopt orphans", err)
		}
	}
	for _, l := range j.Limits {
		var now syscall.Rlimit
		if err := syscall.Getrlimit(l.Which, &now); err != nil {
			return wrap("the limit "+l.Name+" cannot be read", err)
		}
		if err := syscall.Setrlimit(l.Which, &syscall.Rlimit{Cur: min(now.Cur, l.Value), Max: min(now.Max, l.Value)}); err != nil {
			return wrap("the limit "+l.Name+" cannot be set to "+decimal(int(l.Value)), err)
		}
	}
	if err := dropCapabilities(); err != nil {
		return wrap("capabilities cannot be given up", err)
	}
	// Descriptors that this program was given by mistake are not the command's. With CLOEXEC those of the Go runtime work until then.
	if _, _, e := syscall.RawSyscall(sysCloseRange, 3, uintptr(^uint32(0)), closeOnExec); e != 0 {
		return wrap("descriptors cannot be closed", e)
	}
	for _, fd := range j.Keep {
		if _, _, e := syscall.RawSyscall(syscall.SYS_FCNTL, uintptr(fd), syscall.F_SETFD, 0); e != 0 {
			return wrap("descriptor "+decimal(fd)+", which the command keeps, did not arrive", e)
		}
	}
	if j.Rules > 0 {
		if _, _, e := syscall.RawSyscall(sysRestrictSelf, uintptr(j.Rules), 0, 0); e != 0 {
			return wrap("the rules of Landlock cannot be turned on", e)
		}
	}
	return j.filter()
}

// program is struct sock_fprog.
type program struct {
	length uint16 // instructions
	first  *byte
}

func (j *Job) filter() error {
	const instruction = 8
	n := len(j.Filter) / instruction
	if n == 0 || len(j.Filter)%instruction != 0 || n > 1<<16-1 {
		return failure("the job has no system call filter")
	}
	p := program{uint16(n), &j.Filter[0]}
	if _, _, e := syscall.RawSyscall(sysSeccomp, setModeFilter, 0, uintptr(unsafe.Pointer(&p))); e != 0 {
		return wrap("the system call filter cannot be set", e)
	}
	return nil
}

// dropCapabilities gives up all capabilities of this thread. What the bounding set keeps, where it may not be changed, cannot be
// gained: there are no new privileges.
func dropCapabilities() error {
	for c := range uintptr(64) {
		if prctl(prCapBSetDrop, c, 0) == syscall.EINVAL {
			break // the kernel has no more
		}
	}
	_ = prctl(prCapAmbient, prCapAmbientClear, 0) // they go with the permitted ones
	header := struct {
		version uint32
		pid     int32
	}{version: capabilityVersion}
	type sets struct{ effective, permitted, inheritable uint32 }
	var none, left [2]sets
	if _, _, e := syscall.RawSyscall(syscall.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&none[0])), 0); e != 0 {
		return e
	}
	if _, _, e := syscall.RawSyscall(syscall.SYS_CAPGET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&left[0])), 0); e != 0 {
		return e
	}
	if left != none {
		return failure("some are left")
	}
	return nil
}

// listen listens at ports of the network of a box. The command does not inherit the listeners.
func listen(ports []uint16) (fds []int, err error) {
	for _, port := range ports {
		fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
		if err == nil {
			err = syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(port), Addr: [4]byte{127, 0, 0, 1}})
		}
		if err == nil {
			err = syscall.Listen(fd, syscall.SOMAXCONN)
		}
		if err != nil {
			return nil, wrap("nothing can listen at port "+decimal(int(port)), err)
		}
		fds = append(fds, fd)
	}
	return fds, nil
}

// sayRunning says that the command will be executed next, and hands over the listeners.
func (j *Job) sayRunning(inner []int) error {
	if len(inner) == 0 {
		_, err := syscall.Write(j.Says, []byte{Running})
		return err
	}
	return syscall.Sendmsg(j.Says, []byte{Running}, syscall.UnixRights(inner...), nil, syscall.MSG_NOSIGNAL)
}

func readAll(fd int) ([]byte, error) {
	b := make([]byte, 0, 16<<10)
	for {
		if len(b) == cap(b) {
			b = append(b, make([]byte, len(b))...)[:len(b)]
		}
		n, err := syscall.Read(fd, b[len(b):cap(b)])
		switch {
		case err == syscall.EINTR:
		case err != nil:
			return nil, err
		case n == 0:
			return b, nil
		default:
			b = b[:len(b)+n]
		}
	}
}

func prctl(option, a, b uintptr) error {
	if _, _, e := syscall.RawSyscall6(syscall.SYS_PRCTL, option, a, b, 0, 0, 0); e != 0 {
		return e
	}
	return nil
}

func wrap(what string, err error) error { return failure(what + ": " + err.Error()) }

// decimal returns a number, from 0 on, as a text.
func decimal(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return decimal(n/10) + string(rune('0'+n%10))
}
