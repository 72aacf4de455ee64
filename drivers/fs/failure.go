package fs

import (
	"errors"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"rnix/types"
)

// Failure makes a SyscallError of an error of the operating system: the code that fits, the path as
// the caller knows it, and the reason without the system's own names for both. It returns nil for nil
// and a SyscallError as it is.
func Failure(call, path string, err error) error {
	if err == nil {
		return nil
	}
	var done *types.SyscallError
	if errors.As(err, &done) {
		return err
	}
	cause := err
	var pe *fs.PathError
	var le *os.LinkError
	var se *os.SyscallError
	switch {
	case errors.As(err, &pe):
		cause = pe.Err
	case errors.As(err, &le):
		cause = le.Err
	case errors.As(err, &se):
		cause = se.Err
	}
	var no refused
	code := types.ErrDriver
	switch {
	case errors.As(err, &no), errors.Is(err, fs.ErrPermission):
		code = types.ErrPermission
	case strings.Contains(cause.Error(), "escapes from parent"): // os.Root has no value for it
		code, cause = types.ErrPermission, errors.New("the path leads out of the directories that may be used")
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		code = types.ErrNotFound
	case errors.Is(err, fs.ErrExist), errors.Is(err, syscall.ENOTEMPTY):
		code = types.ErrConflict
	case errors.Is(err, syscall.EISDIR):
		code = types.ErrIsDirectory
	case errors.Is(err, syscall.ENAMETOOLONG), errors.Is(err, syscall.ELOOP), errors.Is(err, syscall.EINVAL), strings.Contains(cause.Error(), "too many links"):
		code = types.ErrInvalid
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT), errors.Is(err, syscall.EROFS), errors.Is(err, syscall.EIO):
		code = types.ErrStorage
	case errors.Is(err, syscall.EMFILE), errors.Is(err, syscall.ENFILE), errors.Is(err, syscall.ENOMEM):
		code = types.ErrExhausted
	}
	return &types.SyscallError{Syscall: call, Device: shorten(path), Code: code, Err: cause}
}

// shorten keeps a path that somebody made very long out of messages.
func shorten(path string) string {
	if len(path) <= 300 {
		return path
	}
	return strings.ToValidUTF8(path[:300], "") + "..."
}
