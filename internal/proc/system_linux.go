package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"rnix/runtime/env"
)

// pageSize is what the process table counts resident memory in, in bytes.
var pageSize = int64(os.Getpagesize())

// rssUnit is what the kernel counts resident memory in, in bytes.
const rssUnit = 1024

// BecomeSubreaper makes this program the parent of its descendants' orphans, instead of init. Call it
// before NewManager, whose manager then also waits for them.
func BecomeSubreaper() error {
	if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("become subreaper: %w", err)
	}
	return nil
}

// HideMemory keeps other programs of the same user, such as the commands of agents, from reading the memory and
// the environment of this one, in which there are keys. Root reads them all the same. Children are not hidden.
func HideMemory() error {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 0, 0, 0, 0); err != nil {
		return fmt.Errorf("hide memory: %w", err)
	}
	return nil
}

// Shown calls f while the memory of this program is not hidden: a user who is not root can map users into a new name space only of a
// program that is not.
func Shown(f func() error) error {
	was, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
	if err == nil && was == 0 && os.Geteuid() != 0 {
		if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err == nil {
			defer func() { _ = HideMemory() }()
		}
	}
	return f()
}

func isSubreaper() bool {
	var on int32
	return unix.Prctl(unix.PR_GET_CHILD_SUBREAPER, uintptr(unsafe.Pointer(&on)), 0, 0, 0) == nil && on != 0
}

func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGKILL }

// keepDescriptors closes what we have inherited when a child is started, not now.
func keepDescriptors() {
	_ = unix.CloseRange(3, ^uint(0), unix.CLOSE_RANGE_CLOEXEC) // an old kernel: children inherit what we did
}

// reap waits for a child to exit, calls exited while it still holds its pid, and takes its status.
func reap(p *os.Process, exited func()) (*os.ProcessState, error) {
	for {
		var info unix.Siginfo
		if err := unix.Waitid(unix.P_PID, p.Pid, &info, unix.WEXITED|unix.WNOWAIT, nil); err != unix.EINTR {
			break // an error shows again in Wait
		}
	}
	exited()
	reaping.Lock()
	defer reaping.Unlock()
	return p.Wait() // it has exited: this does not block
}

// processTable returns all processes that can be seen.
func processTable() []stat {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error is as good as it gets
	table := make([]stat, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			if s, ok := statOf(pid); ok {
				table = append(table, s)
			}
		}
	}
	return table
}

func statOf(pid int) (stat, bool) {
	var buf [1 << 10]byte // more than the kernel writes: a name has 15 bytes, and there are some 50 numbers
	fd, err := retried(func() (int, error) {
		return unix.Open("/proc/"+strconv.Itoa(pid)+"/stat", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	})
	if err != nil {
		return stat{}, false
	}
	n, err := retried(func() (int, error) { return unix.Read(fd, buf[:]) })
	_ = unix.Close(fd) // nothing was written
	if err != nil {
		return stat{}, false
	}
	s, err := parseStat(buf[:n])
	return s, err == nil && s.PID == pid
}

// retried makes a system call until no signal interrupts it.
func retried(call func() (int, error)) (n int, err error) {
	for n, err = call(); err == unix.EINTR; n, err = call() {
	}
	return n, err
}

// parseStat reads a line of /proc/<pid>/stat. The name in it is in parentheses and may hold anything,
// parentheses included.
func parseStat(line []byte) (stat, error) {
	open, end := bytes.IndexByte(line, '('), bytes.LastIndexByte(line, ')')
	if open < 0 || end < open {
		return stat{}, errors.New("no name in parentheses")
	}
	pid, err := strconv.Atoi(strings.TrimSpace(string(line[:open])))
	fields := strings.Fields(string(line[end+1:]))
	if err != nil || pid <= 0 || len(fields) < 20 || len(fields[0]) != 1 || !isLetter(fields[0][0]) {
		return stat{}, errors.New("not a line of a process table")
	}
	s := stat{identity: identity{PID: pid}, state: fields[0][0]}
	for i, into := range []*int{&s.parent, &s.group, &s.session} {
		if *into, err = strconv.Atoi(fields[1+i]); err != nil {
			return stat{}, err
		}
	}
	if s.threads, err = strconv.Atoi(fields[17]); err != nil {
		return stat{}, err
	}
	if len(fields) > 21 {
		if pages, err := strconv.ParseInt(fields[21], 10, 40); err == nil && pages > 0 { // else it says nothing
			s.resident = pages * pageSize
		}
	}
	flags, err := strconv.ParseUint(fields[6], 10, 32)
	if err != nil {
		return stat{}, err
	}
	s.exiting = flags&exitingFlag != 0
	s.Start, err = strconv.ParseUint(fields[19], 10, 64)
	return s, err
}

// exitingFlag is PF_EXITING of the flags of a process.
const exitingFlag = 4

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func identityOf(pid int) identity {
	s, _ := statOf(pid) // without /proc the start is 0, and the child is known by its token
	return identity{PID: pid, Start: s.Start}
}

func alive(id identity) bool {
	s, ok := statOf(id.PID)
	return ok && s.identity == id && !s.dead()
}

// tokenOf returns our mark in the environment that a process was started with, or "".
func tokenOf(pid int) string {
	f, err := os.Open("/proc/" + strconv.Itoa(pid) + "/environ")
	if err != nil {
		return ""
	}
	defer f.Close()
	environ, _ := io.ReadAll(io.LimitReader(f, 8<<20)) // the process may end while we read
	for kv := range bytes.SplitSeq(environ, []byte{0}) {
		if token, ok := bytes.CutPrefix(kv, []byte(env.OwnerVar+"=")); ok {
			return string(token)
		}
	}
	return ""
}

// spared returns the processes that are never signalled: init, ourselves and those above us.
func spared(table []stat) map[int]bool {
	out := ancestors(table, os.Getpid())
	out[1] = true
	return out
}

// signal sends sig to a process if it is still the one that is meant.
func signal(id identity, sig syscall.Signal) {
	if id.PID <= 1 || id.Start == 0 {
		return
	}
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err == nil {
		defer unix.Close(fd)
	}
	if s, ok := statOf(id.PID); !ok || s.identity != id {
		return
	}
	switch {
	case err == nil:
		_ = unix.PidfdSendSignal(fd, sig, nil, 0) // it may have ended: that is no news
	case errors.Is(err, unix.ENOSYS), errors.Is(err, unix.EMFILE), errors.Is(err, unix.EPERM):
		_ = unix.Kill(id.PID, sig) // as close to the check as can be
	}
}

// awaitGone waits until the processes have ended, at most until the given time. It returns those that
// have not.
func awaitGone(ids []identity, until time.Time) []identity {
	var left []identity
	for _, id := range ids {
		if !gone(id, until) {
			left = append(left, id)
		}
	}
	return left
}

func gone(id identity, until time.Time) bool {
	fd, err := unix.PidfdOpen(id.PID, 0)
	if err != nil {
		return !alive(id)
	}
	defer unix.Close(fd)
	for alive(id) {
		left := time.Until(until)
		if left <= 0 {
			return false
		}
		_, _ = unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1) // what came of it is asked above
	}
	return true
}

// bootID names the time since the last boot; start times mean nothing beyond it.
func bootID() string {
	b, _ := os.ReadFile("/proc/sys/kernel/random/boot_id") // then all boots look alike
	return strings.TrimSpace(string(b))
}

// reapZombie takes the status of a child that nobody else waits for.
func reapZombie(pid int) bool {
	reaping.Lock()
	defer reaping.Unlock()
	var status unix.WaitStatus
	got, err := unix.Wait4(pid, &status, unix.WNOHANG, nil)
	return err == nil && got == pid
}

// bornIn has a child be born in a cgroup. shut is called when it was started.
func bornIn(attr *syscall.SysProcAttr, g cgroup) (shut func(), err error) {
	fd, err := unix.Open(string(g), unix.O_PATH|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open", err)
	}
	attr.UseCgroupFD, attr.CgroupFD = true, fd
	return func() {
		attr.UseCgroupFD, attr.CgroupFD = false, 0
		_ = unix.Close(fd) // nothing was written
	}, nil
}

// sinceBoot reads the clock that runs on while the host sleeps.
func sinceBoot() time.Duration {
	var ts unix.Timespec
	if unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts) != nil {
		return 0
	}
	return time.Duration(ts.Nano())
}
