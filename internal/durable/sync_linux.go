package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// datasync flushes the bytes and the length of a file; fdatasync leaves out the times, which saves a
// write to the journal of the file system.
func datasync(f *os.File) error {
	conn, err := f.SyscallConn()
	if err != nil {
		return err
	}
	var serr error
	err = conn.Control(func(fd uintptr) {
		for serr = unix.Fdatasync(int(fd)); serr == unix.EINTR; {
			serr = unix.Fdatasync(int(fd))
		}
	})
	if err != nil {
		return err
	}
	if serr != nil {
		return &os.PathError{Op: "fdatasync", Path: f.Name(), Err: serr}
	}
	return nil
}
