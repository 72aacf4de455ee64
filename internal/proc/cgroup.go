package proc

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// cgroup is the directory of a cgroup of the unified hierarchy, which counts with all cgroups in it; "" = none, in which nothing is.
type cgroup string

// killFile is the file by which the kernel kills all that is in a cgroup at once, also what is frozen and what forks meanwhile. Since Linux 5.14.
const killFile = "cgroup.kill"

// pids returns who is in it, but what hides where its path is too long to be opened.
func (g cgroup) pids() (out []int) {
	if g == "" {
		return nil
	}
	_ = filepath.WalkDir(string(g), func(path string, e fs.DirEntry, err error) error { // what cannot be read is gone
		if err != nil || e.Name() != memberFile {
			return nil
		}
		text, _ := os.ReadFile(path)
		for f := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(f); err == nil && pid > 0 { // 0 = in a pid namespace that we do not see
				out = append(out, pid)
			}
		}
		return nil
	})
	return out
}

// populated reports whether a process is in it that has not ended.
func (g cgroup) populated() bool {
	if g == "" {
		return false
	}
	text, err := os.ReadFile(filepath.Join(string(g), "cgroup.events"))
	return err == nil && slices.Contains(strings.Split(string(text), "\n"), "populated 1")
}

// living returns the processes in it that have not ended.
func (g cgroup) living() (out []identity) {
	if !g.populated() {
		return nil
	}
	for _, pid := range g.pids() {
		if s, ok := statOf(pid); ok && !s.dead() {
			out = append(out, s.identity)
		}
	}
	return out
}

// kill kills all that is in it. Of one that is gone nothing is left.
func (g cgroup) kill() error {
	if g == "" {
		return nil
	}
	err := poke(filepath.Join(string(g), killFile), "1")
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENODEV) {
		return nil
	}
	return err
}

// remove removes it with those in it, once nobody is in it any more; it waits for that until the given time. One that is gone is no error.
func (g cgroup) remove(until time.Time) error {
	if g == "" {
		return nil
	}
	for pause := 100 * time.Microsecond; ; pause = min(2*pause, 10*time.Millisecond) {
		err := g.prune()
		if !errors.Is(err, syscall.EBUSY) || time.Now().After(until) { // who is dying is still inside
			return err
		}
		time.Sleep(pause)
	}
}

// prune removes it with those in it, as far as they are empty.
func (g cgroup) prune() error {
	err := unix.Rmdir(string(g))
	if errors.Is(err, syscall.EBUSY) { // also while there are others in it
		entries, _ := os.ReadDir(string(g))
		for _, e := range entries {
			if e.IsDir() {
				_ = cgroup(filepath.Join(string(g), e.Name())).prune() // what cannot be removed keeps this one from it
			}
		}
		err = unix.Rmdir(string(g))
	}
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}
