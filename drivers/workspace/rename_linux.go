package workspace

import (
	"errors"
	"os"

	"golang.org/x/sys/unix"
)

// renameNew renames a file between two directories, and fails with EEXIST if the new name is taken.
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
	err = unix.Renameat2(int(fd.Fd()), from, int(td.Fd()), to, unix.RENAME_NOREPLACE)
	if errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EINVAL) {
		return renameChecked(fd, td, toDir, from, to) // a file system that cannot refuse
	}
	return err
}

// renameChecked looks before it renames. Another program could take the name in between.
func renameChecked(fd, td *os.File, toDir *os.Root, from, to string) error {
	if _, err := toDir.Lstat(to); err == nil {
		return unix.EEXIST
	}
	return unix.Renameat(int(fd.Fd()), from, int(td.Fd()), to)
}
