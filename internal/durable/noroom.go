package durable

import (
	"errors"
	"syscall"
)

// NoRoom reports whether a write has failed because the disk, or what its user may have of it, is full: with room again the same
// write succeeds.
func NoRoom(err error) bool {
	return errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EDQUOT) || errors.Is(err, syscall.EFBIG)
}
