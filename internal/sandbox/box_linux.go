package sandbox

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// identity returns which file a path is, and in which state.
func identity(path string) string {
	var st unix.Stat_t
	if err := unix.Lstat(path, &st); err != nil {
		return err.Error()
	}
	return fmt.Sprint(st.Dev, st.Ino, st.Mode, st.Uid, st.Gid, st.Size, st.Ctim.Sec, st.Ctim.Nsec, st.Nlink)
}

// heldMode marks what holds the name of a missing path: the sticky bit, which nothing else sets on a directory of one user. One
// that a crash has left is removed by the next box that holds the same name.
const heldMode = unix.S_ISVTX | 0o755

// holding is a name that is held by an empty directory, or a file that changes nothing. Several boxes hold a name together: each
// has a shared lock, and the last one removes it.
type holding struct {
	path string
	lock *os.File
}

// heldFiles are the protected names that programs read as files and cannot take for directories, with what says the same as their absence.
var heldFiles = func() map[string]string {
	files := map[string]string{"commondir": "."}
	for _, name := range loginFiles {
		if !strings.Contains(name, "/") {
			files[name] = ""
		}
	}
	return files
}()

// hold makes what holds a name, or shares it.
func hold(path string) (*holding, error) {
	const attempts = 100 // each means that another box has just given the name back
	for range attempts {
		made, err := makeHeld(path)
		if err != nil {
			return nil, err
		}
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if os.IsNotExist(err) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if err = unix.Flock(int(f.Fd()), unix.LOCK_SH); err == nil && made {
			err = unix.Fchmod(int(f.Fd()), heldMode)
		}
		if err == nil && sameFile(f, path) {
			return &holding{path, f}, nil
		}
		_ = f.Close()
		if err != nil {
			return nil, err
		}
	}
	return nil, fmt.Errorf("other commands make and remove it all the time")
}

// makeHeld makes what holds a name, and says whether it did.
func makeHeld(path string) (bool, error) {
	text, isFile := heldFiles[filepath.Base(path)]
	if !isFile {
		err := unix.Mkdir(path, heldMode) // at once, so that nobody sees one that is not marked, unless the umask says otherwise
		if err == unix.EEXIST {
			return false, nil
		}
		return err == nil, err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL|unix.O_NOFOLLOW, 0o644)
	if os.IsExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(text)
	if e := f.Close(); err == nil {
		err = e
	}
	return err == nil, err
}

func sameFile(f *os.File, path string) bool {
	open, err := f.Stat()
	if err != nil {
		return false
	}
	there, err := os.Lstat(path)
	return err == nil && os.SameFile(open, there)
}

// IsHeld reports whether what is at a path only holds the name, for a box: whoever reads it finds nothing.
func IsHeld(path string) bool {
	var st unix.Stat_t
	_, isFile := heldFiles[filepath.Base(path)]
	return unix.Lstat(path, &st) == nil && st.Mode&0o7777 == heldMode && (st.Mode&unix.S_IFMT == unix.S_IFDIR || isFile)
}

// GiveBack removes what held names for boxes that have ended without Close, such as those of a daemon that was killed. What another box
// holds stays, and what is something else.
func GiveBack(paths []string) error {
	var errs []error
	for _, path := range paths {
		f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		if err == nil {
			err = (&holding{path, f}).release()
		} else if os.IsNotExist(err) || errors.Is(err, unix.ELOOP) || errors.Is(err, unix.ENOTDIR) {
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// release removes what held the name, unless another box still holds it or something else has taken its place.
func (h *holding) release() error {
	defer h.lock.Close()
	if unix.Flock(int(h.lock.Fd()), unix.LOCK_EX|unix.LOCK_NB) != nil || !sameFile(h.lock, h.path) {
		return nil
	}
	info, err := h.lock.Stat()
	if err != nil {
		return err
	}
	if st, ok := info.Sys().(*syscall.Stat_t); !ok || st.Mode&0o7777 != heldMode {
		return nil
	}
	if info.IsDir() {
		err = unix.Rmdir(h.path)
	} else {
		err = unix.Unlink(h.path)
	}
	if err == unix.ENOTEMPTY || err == unix.ENOENT {
		return nil // it was put to use, or is gone
	}
	return err
}
