package ash

import (
	"bufio"
	"errors"
	"math"
	"os"
	"runtime/debug"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// What the process in which scripts run may use. Programs that it starts are not limited by it.
const (
	maxMemory = 1 << 30  // bytes of data, besides what a process has that does nothing
	maxStack  = 32 << 20 // bytes of one goroutine: some ten thousand calls of functions
)

// started is the limit of data that this process was started with.
var started unix.Rlimit

// limit puts the limits into force for this process.
func limit() error {
	debug.SetTraceback("none")
	debug.SetMaxStack(maxStack)
	debug.SetMemoryLimit(maxMemory * 3 / 4) // the collector works harder before it is too late
	if err := unix.Getrlimit(unix.RLIMIT_DATA, &started); err != nil {
		return err
	}
	most := dataNow() + detector*maxMemory
	if started.Cur <= most {
		return nil
	}
	// The hard limit stays: who raises the soft one again does it for a program.
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: most, Max: started.Max})
}

// unlimited gives a program that was just started the limit that this process was started with.
func unlimited(pid int) {
	l := started
	if l.Max == 0 {
		return // no limits were put into force
	}
	// It may have ended; and if the limit stays, the program has less room than it could have, and says so.
	_ = unix.Prlimit(pid, unix.RLIMIT_DATA, &l, nil)
}

// dataNow returns how much data this process has, in bytes, as the limit counts it.
func dataNow() uint64 {
	f, err := os.Open("/proc/self/status")
	if err != nil {
		return math.MaxUint64 - detector*maxMemory // no limit then
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if kb, ok := strings.CutPrefix(lines.Text(), "VmData:"); ok {
			n, err := strconv.ParseUint(strings.TrimSuffix(strings.TrimSpace(kb), " kB"), 10, 64)
			if err == nil {
				return n << 10
			}
		}
	}
	return math.MaxUint64 - detector*maxMemory
}

// fewFiles reports whether most of the files that this process may have open are.
func fewFiles() bool {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_NOFILE, &l) != nil {
		return false
	}
	fd, err := unix.FcntlInt(0, unix.F_DUPFD_CLOEXEC, 0) // the lowest number that is free
	if err != nil {
		return errors.Is(err, unix.EMFILE)
	}
	_ = unix.Close(fd)
	return uint64(fd) > l.Cur/4*3
}

// reopened returns the terminal of a file, opened anew, so that waiting for a line can be ended; nil if it
// is none.
func reopened(f *os.File) *os.File {
	if f == nil {
		return nil
	}
	if _, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err != nil {
		return nil
	}
	tty, err := os.OpenFile("/proc/self/fd/"+strconv.Itoa(int(f.Fd())), os.O_RDONLY, 0)
	if errors.Is(err, os.ErrPermission) {
		return nil // a terminal of another user, as under su
	}
	if err != nil {
		return nil
	}
	return tty
}
