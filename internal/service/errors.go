package service

import (
	"cmp"

	"rnix/types"
)

// Named completes an error that does not say of what and in which call it speaks.
func Named(err error, op, path string) error {
	if e, ok := err.(*types.SyscallError); ok && e.Device == "" { //nolint:errorlint // only the outermost is completed
		filled := *e
		filled.Device, filled.Syscall = path, cmp.Or(e.Syscall, op)
		return &filled
	}
	return err
}
