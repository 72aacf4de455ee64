package statehome

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// CheckPrivateDir makes sure that path, which must be absolute, is a directory that nobody but this
// user can enter. A missing one is made with mode 0700, its missing parents as well. One that we own and that is open to
// others is closed to them. It returns an error of code PERMISSION if path is a symbolic link, no
// directory, or owned by somebody else, or if others could replace it because its parent is writable
// by them and not sticky.
func CheckPrivateDir(path string) error { return checkPrivateDir(path, os.Geteuid()) }

func checkPrivateDir(path string, uid int) error {
	const op = "CheckPrivateDir"
	if !filepath.IsAbs(path) {
		return types.Errorf(types.ErrInvalid, op, path, "must be an absolute path")
	}
	path = filepath.Clean(path)
	if err := makeDir(path); err != nil {
		return err
	}
	// The directory is opened once, and it is the open one that is looked at and mended: whoever
	// exchanges the name meanwhile gains nothing.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_DIRECTORY|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
	if err != nil {
		if link, lerr := os.Readlink(path); lerr == nil {
			return types.Errorf(types.ErrPermission, op, path, "is a symbolic link to %s; remove it, or name the directory itself", link)
		}
		if err == unix.ENOTDIR {
			return types.Errorf(types.ErrPermission, op, path, "is not a directory; remove it")
		}
		return types.Errorf(codeOf(err), op, path, "%w", err)
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return types.Errorf(types.ErrInternal, op, path, "%w", err)
	}
	if int(st.Uid) != uid {
		return types.Errorf(types.ErrPermission, op, path,
			"is owned by uid %d, not by uid %d who runs this; remove it, or set XDG_RUNTIME_DIR to a directory of your own", st.Uid, uid)
	}
	if st.Mode&0o077 != 0 {
		if err := unix.Fchmod(fd, 0o700); err != nil {
			return types.Errorf(types.ErrPermission, op, path, "is open to other users (mode %04o) and cannot be closed: %w", st.Mode&0o777, err)
		}
	}
	return checkParent(op, filepath.Dir(path), uid)
}

// checkParent refuses a parent in which others could exchange the directory for one of their own.
func checkParent(op, parent string, uid int) error {
	var st unix.Stat_t
	if err := unix.Stat(parent, &st); err != nil {
		return types.Errorf(codeOf(err), op, parent, "%w", err)
	}
	if st.Mode&0o022 != 0 && st.Mode&unix.S_ISVTX == 0 {
		return types.Errorf(types.ErrPermission, op, parent,
			"other users may write here (mode %04o) and could replace what is inside; run chmod go-w %s", st.Mode&0o7777, parent)
	}
	if int(st.Uid) != uid && st.Uid != 0 {
		return types.Errorf(types.ErrPermission, op, parent, "is owned by uid %d, who could replace what is inside", st.Uid)
	}
	return nil
}

// makeDir makes path and its missing parents, private to this user.
func makeDir(path string) error {
	err := os.Mkdir(path, 0o700)
	if errors.Is(err, fs.ErrNotExist) && filepath.Dir(path) != path {
		if err := makeDir(filepath.Dir(path)); err != nil {
			return err
		}
		err = os.Mkdir(path, 0o700)
	}
	if err == nil || errors.Is(err, fs.ErrExist) {
		return nil
	}
	return types.Errorf(codeOf(err), "CheckPrivateDir", path, "%w", err)
}

func codeOf(err error) types.ErrCode {
	switch {
	case errors.Is(err, fs.ErrPermission):
		return types.ErrPermission
	case errors.Is(err, fs.ErrNotExist):
		return types.ErrNotFound
	case errors.Is(err, unix.ENOSPC), errors.Is(err, unix.EROFS), errors.Is(err, unix.EIO):
		return types.ErrStorage
	}
	return types.ErrInternal
}
