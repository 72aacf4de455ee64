package durable

import (
	"errors"
	"path/filepath"
	"syscall"

	"golang.org/x/sys/unix"
)

// NoRoom reports whether a write has failed because the disk, or what its user may have of it, is full: with room again the same
// write succeeds.
func NoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}

// ReadOnly reports whether a write has failed because the file system is read-only: when it can be written again the same write succeeds.
func ReadOnly(err error) bool { return errors.Is(err, syscall.EROFS) }

// Unwritable reports whether a write has failed because the disk takes none at this time: it is full, or read-only. What is there can
// be read, and the same write succeeds later.
func Unwritable(err error) bool { return NoRoom(err) || ReadOnly(err) }

// OnReadOnly reports whether path, or what exists of the directories above it, is on a file system that is read-only.
func OnReadOnly(path string) bool {
	for {
		err := unix.Access(path, unix.W_OK)
		if up := filepath.Dir(path); errors.Is(err, syscall.ENOENT) && up != path {
			path = up
			continue
		}
		return ReadOnly(err)
	}
}
