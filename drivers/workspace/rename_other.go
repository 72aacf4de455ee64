//go:build unix && !linux

package workspace

import (
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file between two directories, and fails with EEXIST if the new name is taken.
// It looks before it renames: another program could take the name in between.
func renameNew(fromDir *os.Root, from string, toDir *os.Root, to string) error {
	fd, err := fromDir.Open(".")
	if err != nil {
		return err
	}
	defer fd.Close()
	td, err := toDir.Open(".")
	if err != nil {
		return err
	}
	defer td.Close()
	if _, err := toDir.Lstat(to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(int(fd.Fd()), from, int(td.Fd()), to)
}
