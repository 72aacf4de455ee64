package proc

import (
	"bytes"
	"os"
	"strconv"
)

// wardenName is what lists of processes call a warden, whose arguments are those of its daemon.
const wardenName = "rnix-warden"

// Within reports whether a process of the operating system descends from what a daemon has started, of this user or of another, and
// which is the warden of that daemon: it stands above the process's parent. The daemon itself, whose parent the warden is, is within
// nothing. No process chooses its ancestors, nor how another one is called, so nobody gets out of this as long as the warden lives.
// Where processes cannot be seen, nobody is within anything.
func Within(pid int) (warden int, inside bool) {
	at, ok := statOf(pid)
	for n := 0; ok && n < maxAncestors && at.parent > 1; n++ {
		if n > 0 && calledWarden(at.parent) {
			return at.parent, true
		}
		at, ok = statOf(at.parent)
	}
	return 0, false
}

// MayBeDaemon reports whether a process may be a daemon: it is the child of a warden, or processes cannot be seen here. A note of a PID
// can be anybody's writing.
func MayBeDaemon(pid int) bool {
	if _, see := statOf(os.Getpid()); !see {
		return true
	}
	at, ok := statOf(pid)
	return ok && at.parent > 1 && calledWarden(at.parent)
}

func calledWarden(pid int) bool {
	name, _ := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/comm") // it may be gone, or hidden
	return string(bytes.TrimSpace(name)) == wardenName
}
