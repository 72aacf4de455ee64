package run

import (
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"rnix/ipc"
)

// stagePrefix is how the names of the directories begin in which cases run.
const stagePrefix = "rnixt"

// holdFile is what the run of a case holds a lock on in its directory, for as long as it lives, and what stands in it.
const (
	holdFile = ".rnix-test-run"
	holdText = "the directory of a case that rnix test run runs; the next run removes it, if this one was killed\n"
)

// hold marks a directory as that of a run which lives. The mark has its name only when the lock is held, so nobody
// finds one whose run seems dead. The lock goes with the process, and no child has it.
func hold(dir string) (*os.File, error) {
	path := filepath.Join(dir, holdFile)
	f, err := os.OpenFile(path+".new", os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return nil, err
	}
	if err = unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); err == nil {
		_, err = f.WriteString(holdText)
	}
	if err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		f.Close()
		return nil, err
	}
	return f, nil
}

// sweep removes the directories of runs that were killed: those of this user that have a mark which nobody holds, and
// no daemon. What it cannot remove is left for the next time.
func sweep(temp string) {
	list, err := os.ReadDir(temp)
	if err != nil {
		return
	}
	for _, e := range list {
		if dir := filepath.Join(temp, e.Name()); strings.HasPrefix(e.Name(), stagePrefix) && e.IsDir() && mine(dir, unix.S_IFDIR) {
			sweepOne(dir)
		}
	}
}

func sweepOne(dir string) {
	path := filepath.Join(dir, holdFile)
	if !mine(path, unix.S_IFREG) {
		return
	}
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer f.Close()
	text := make([]byte, len(holdText)+1)
	if n, _ := f.Read(text); string(text[:n]) != holdText || unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil {
		return
	}
	if _, held, err := ipc.LockHolder(ipc.DataLock(filepath.Join(dir, "data"))); err != nil || held {
		return // its daemon ends by itself when it is idle
	}
	_ = removeAll(dir) // what stays is removed the next time
}

// mine reports whether a file is of a kind, belongs to this user, and nobody else may write to it.
func mine(path string, kind uint32) bool {
	var st unix.Stat_t
	return unix.Lstat(path, &st) == nil && st.Mode&unix.S_IFMT == kind && int(st.Uid) == os.Getuid() && st.Mode&0o022 == 0
}
