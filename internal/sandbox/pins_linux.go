package sandbox

import (
	"os"
	"slices"
	"strconv"

	"golang.org/x/sys/unix"

	"rnix/types"
)

// pin opens what a box of bubblewrap mounts, and returns its arguments with these descriptors in place of the paths. So what was looked at is what is mounted: a
// directory that became a link meanwhile would lead the mount elsewhere. It fails with CONFLICT for a path that has.
func pin(argv []string) (pinned []string, files []*os.File, err error) {
	pinned = slices.Clone(argv)
	for i := range pinned {
		if !pins(argv, i) {
			continue
		}
		f, err := openPinned(argv[i+1])
		if err != nil {
			closeFiles(files)
			return nil, nil, types.Errorf(types.ErrConflict, "sandbox", argv[i+1], "it has become something else while the command was started, so it is not given to it: %w; try again", err)
		}
		pinned[i], pinned[i+1] = argv[i]+"-fd", strconv.Itoa(firstPin+len(files))
		files = append(files, f)
	}
	return pinned, files, nil
}

// openPinned opens a path, which was resolved: a link in it is one that was put there since.
func openPinned(path string) (*os.File, error) {
	fd, err := unix.Openat2(unix.AT_FDCWD, path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_NO_SYMLINKS})
	if err == unix.ENOSYS { // a filter around this program
		fd, err = unix.Open(path, unix.O_PATH|unix.O_CLOEXEC|unix.O_NOFOLLOW, 0) // which opens a link itself
	}
	if err != nil {
		return nil, err
	}
	var st unix.Stat_t
	if err = unix.Fstat(fd, &st); err == nil && st.Mode&unix.S_IFMT == unix.S_IFLNK {
		err = unix.ELOOP
	}
	if err != nil {
		_ = unix.Close(fd)
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}
