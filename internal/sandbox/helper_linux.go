//go:build amd64 || arm64

package sandbox

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"strconv"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Helper is the inner helper. It reads its job from the descriptor that its one argument names, gives up what the command must not have,
// and executes the command in its place. If it returns, nothing has run; the caller exits with the status, which is NotRun. With
// other arguments it is the test that Probe runs in a box, and returns its status.
func Helper(args []string) int {
	if len(args) > 0 && args[0] == checkWord {
		return checkInside(args[1:])
	}
	// The thread that is confined must be the one that executes.
	runtime.LockOSThread()
	says, err := runJob(args)
	fmt.Fprintln(says, err)
	return NotRun
}

// runJob returns only if the command was not executed, and to whom to say why.
func runJob(args []string) (says io.Writer, err error) {
	says = os.Stderr
	if len(args) != 1 {
		return says, fmt.Errorf("%s is started by rnix itself, with the number of a descriptor", Word)
	}
	fd, err := strconv.Atoi(args[0])
	if err != nil || fd < 3 {
		return says, fmt.Errorf("invalid descriptor %q", args[0])
	}
	file := os.NewFile(uintptr(fd), "job")
	text, err := io.ReadAll(file)
	if err != nil {
		return says, fmt.Errorf("the job cannot be read: %w", err)
	}
	var j job
	if err := json.Unmarshal(text, &j); err != nil {
		return says, fmt.Errorf("the job is damaged: %w", err)
	}
	pipe := os.NewFile(uintptr(j.Says), "says")
	if j.Stderr > 0 {
		if err := unix.Dup3(j.Stderr, 2, 0); err != nil {
			return pipe, fmt.Errorf("standard error: %w", err)
		}
	}
	inner, err := listenInside(j.Listen)
	if err != nil {
		return pipe, err
	}
	if err := unix.Chdir(string(j.Dir)); err != nil {
		return pipe, fmt.Errorf("the directory %s: %w; the policy may hide it", j.Dir, err)
	}
	if err := confine(j); err != nil {
		return pipe, err
	}
	if err := sayRunning(pipe, inner); err != nil {
		return pipe, err // nobody waits for it any more
	}
	err = unix.Exec(string(j.Path), cooked(j.Args), cooked(j.Env))
	return pipe, fmt.Errorf("%s: %w", j.Path, err)
}

func cooked(list [][]byte) []string {
	out := make([]string, len(list))
	for i, b := range list {
		out[i] = string(b)
	}
	return out
}

// confine gives up rights in an order in which each step still can do what it needs.
func confine(j job) error {
	if err := unix.Prctl(unix.PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0); err != nil {
		return fmt.Errorf("new privileges cannot be given up: %w", err)
	}
	if j.Rung == RungLandlock { // what descends from it stays below it; under bubblewrap its namespace sees to that
		if err := unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0); err != nil {
			return fmt.Errorf("it cannot adopt orphans: %w", err)
		}
	}
	if err := setLimits(j.Limits, j.Rung); err != nil {
		return err
	}
	if err := dropCapabilities(); err != nil {
		return fmt.Errorf("capabilities cannot be given up: %w", err)
	}
	// Descriptors that this program was given by mistake are not the command's. With CLOEXEC those of the Go runtime work until then.
	if err := unix.CloseRange(3, math.MaxUint32, unix.CLOSE_RANGE_CLOEXEC); err != nil {
		return fmt.Errorf("descriptors cannot be closed: %w", err)
	}
	for _, fd := range j.Keep {
		if _, err := unix.FcntlInt(uintptr(fd), unix.F_SETFD, 0); err != nil {
			return fmt.Errorf("descriptor %d, which the command keeps, did not arrive: %w", fd, err)
		}
	}
	if j.Rung == RungLandlock {
		if err := restrict(j.Rules, j.Network); err != nil {
			return err
		}
	}
	program := filter(filtered{j.Rung, j.Network, j.Unix, j.Single})
	prog := unix.SockFprog{Len: uint16(len(program)), Filter: &program[0]}
	if _, _, e := unix.Syscall(unix.SYS_SECCOMP, unix.SECCOMP_SET_MODE_FILTER, 0, uintptr(unsafe.Pointer(&prog))); e != 0 {
		return fmt.Errorf("the system call filter cannot be set: %w", e)
	}
	return nil
}

// setLimits sets the limits of resources, and never raises one.
func setLimits(l Limits, rung Rung) error {
	processes := l.Processes
	if rung == RungLandlock { // it would count all processes of the user
		processes = 0
	}
	for _, limit := range []struct {
		name  string
		which int
		value int64
		set   bool
	}{
		{"core", unix.RLIMIT_CORE, 0, true},
		{"processes", unix.RLIMIT_NPROC, processes, processes > 0},
		{"memory", unix.RLIMIT_DATA, l.Memory, l.Memory > 0},
		{"open_files", unix.RLIMIT_NOFILE, l.OpenFiles, l.OpenFiles > 0},
		{"file_size", unix.RLIMIT_FSIZE, l.FileSize, l.FileSize > 0},
		{"cpu", unix.RLIMIT_CPU, l.CPU, l.CPU > 0},
	} {
		if !limit.set {
			continue
		}
		var now unix.Rlimit
		if err := unix.Getrlimit(limit.which, &now); err != nil {
			return fmt.Errorf("the limit %s cannot be read: %w", limit.name, err)
		}
		value := uint64(limit.value)
		set := unix.Rlimit{Cur: min(now.Cur, value), Max: min(now.Max, value)}
		if err := unix.Setrlimit(limit.which, &set); err != nil {
			return fmt.Errorf("the limit %s cannot be set to %d: %w", limit.name, limit.value, err)
		}
	}
	return nil
}

// dropCapabilities gives up all capabilities of this thread. What the bounding set keeps, where it may not be changed, cannot be
// gained: there are no new privileges.
func dropCapabilities() error {
	for c := range 64 {
		if unix.Prctl(unix.PR_CAPBSET_DROP, uintptr(c), 0, 0, 0) == unix.EINVAL {
			break // the kernel has no more
		}
	}
	_ = unix.Prctl(unix.PR_CAP_AMBIENT, unix.PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0) // they go with the permitted ones
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var none, left [2]unix.CapUserData
	if err := unix.Capset(&header, &none[0]); err != nil {
		return err
	}
	if err := unix.Capget(&header, &left[0]); err != nil {
		return err
	}
	if left != none {
		return fmt.Errorf("some are left: %+v", left)
	}
	return nil
}
