package proc

import (
	"bytes"
	"os"
	"slices"
	"strconv"
	"sync"

	"golang.org/x/sys/unix"
)

// reaping is held while the status of a child is taken and while our children are listed: a child that
// leaves the list meanwhile could hide another. Taken last.
var reaping sync.Mutex

// hasExited reports whether a child of ours has exited with all its threads, waited for or not. What had
// descended from it has another parent then.
func hasExited(pid int) bool {
	var info unix.Siginfo
	err := unix.Waitid(unix.P_PID, pid, &info, unix.WEXITED|unix.WNOWAIT|unix.WNOHANG, nil)
	return err == unix.ECHILD || err == nil && info.Signo != 0
}

// noOrphans reports that this program, a subreaper, has no living child but those that its managers have started, and
// what is in its own session, where none of these can get: then nothing is left of one that has exited, and the process
// table need not be read to see it. It reports false also where it cannot tell.
func noOrphans() bool {
	if !isSubreaper() {
		return false
	}
	known := leaders()
	self, seen := statOf(os.Getpid())
	children, ok := childrenOf(os.Getpid())
	if !ok || !seen {
		return false
	}
	var unknown []identity
	for _, pid := range children {
		switch s, found := statOf(pid); {
		case !found:
			return false
		case !s.dead() && s.session != self.session && !known[s.identity]:
			unknown = append(unknown, s.identity)
		}
	}
	if len(unknown) == 0 {
		return true
	}
	known = settledLeaders() // who was being started then is among them
	return !slices.ContainsFunc(unknown, func(id identity) bool { return !known[id] })
}

// leaders returns the children of all managers.
func leaders() map[identity]bool {
	all := make(map[identity]bool)
	for _, c := range everyones(func(*Child) bool { return true }) {
		all[c.entry.Leader] = true
	}
	return all
}

// settledLeaders is leaders when no start is under way.
func settledLeaders() map[identity]bool {
	family.forking.Lock()
	defer family.forking.Unlock()
	return leaders()
}

// ownTable is the part of the process table that this program's children and itself are. Where the kernel does not list these it is the whole.
func ownTable() []stat {
	self := os.Getpid()
	children, ok := childrenOf(self)
	if !ok {
		return processTable()
	}
	table := make([]stat, 0, len(children)+1)
	for _, pid := range append(children, self) {
		if s, found := statOf(pid); found {
			table = append(table, s)
		}
	}
	return table
}

// childrenOf lists the children of all threads of a process. It reports false if the kernel does not list
// them, or if a thread came or went meanwhile, which moves children from one to another.
func childrenOf(pid int) (children []int, ok bool) {
	reaping.Lock()
	defer reaping.Unlock()
	dir := "/proc/" + strconv.Itoa(pid) + "/task/"
	threads, ok := numbers(dir)
	for _, tid := range threads {
		list, err := os.ReadFile(dir + strconv.Itoa(tid) + "/children")
		if err != nil {
			return nil, false
		}
		for f := range bytes.FieldsSeq(list) {
			child, err := strconv.Atoi(string(f))
			if err != nil {
				return nil, false
			}
			children = append(children, child)
		}
	}
	again, still := numbers(dir)
	return children, ok && still && slices.Equal(threads, again)
}

// numbers returns the names in a directory that are numbers, sorted.
func numbers(dir string) (out []int, ok bool) {
	f, err := os.Open(dir)
	if err != nil {
		return nil, false
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		if n, err := strconv.Atoi(name); err == nil {
			out = append(out, n)
		}
	}
	slices.Sort(out)
	return out, err == nil
}
