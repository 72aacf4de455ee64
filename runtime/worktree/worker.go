package worktree

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Worker returns a process that works in a directory or below it, and what that is called; 0 = none, or none that can be seen. It works there if its
// working directory is there, or a file that it has open for writing: what it writes is lost when the directory is removed, whatever was kept before.
func Worker(dir string) (pid int, name string) {
	within := func(path string) bool { return path == dir || strings.HasPrefix(path, dir+"/") }
	found, _ := filepath.Glob("/proc/[0-9]*") // the pattern is good
	for _, proc := range found {
		if cwd, err := os.Readlink(proc + "/cwd"); (err != nil || !within(cwd)) && !writes(proc, within) {
			continue
		}
		comm, _ := os.ReadFile(proc + "/comm") // for people only
		pid, _ = strconv.Atoi(filepath.Base(proc))
		return pid, strings.TrimSpace(string(comm))
	}
	return 0, ""
}

// writes reports whether a process has a file open for writing whose path is within something. One that has no name any more does not count: it goes
// with the process in any case. Nor does one that a child of ours has from us for as long as it has not begun to run its program.
func writes(proc string, within func(path string) bool) bool {
	fds, err := os.Open(proc + "/fd")
	if err != nil {
		return false // it has ended, or is another user's
	}
	defer fds.Close()
	names, _ := fds.Readdirnames(-1) // it may end meanwhile
	for _, n := range names {
		link := proc + "/fd/" + n
		path, err := os.Readlink(link)
		if err != nil || !within(path) || strings.HasSuffix(path, " (deleted)") {
			continue
		}
		if info, err := os.Lstat(link); err == nil && info.Mode()&0o200 != 0 { // the permissions of the link are how it was opened
			return !starting(proc)
		}
	}
	return false
}

// starting reports whether a process is a child of this program between fork and exec: it looks like this program, and does nothing but start another.
func starting(proc string) bool {
	stat, err := os.ReadFile(proc + "/stat")
	own, oerr := os.ReadFile("/proc/self/cmdline")
	is, ierr := os.ReadFile(proc + "/cmdline")
	if err != nil || oerr != nil || ierr != nil {
		return false
	}
	_, rest, _ := strings.Cut(string(stat[bytes.LastIndexByte(stat, ')')+1:]), " ") // behind the name, which may be anything
	f := strings.Fields(rest)                                                       // its state, its parent
	return len(f) > 1 && f[1] == strconv.Itoa(os.Getpid()) && bytes.Equal(own, is)
}
