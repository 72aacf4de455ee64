package fs

import (
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// ofKernel reports whether f is a file of procfs or sysfs, such as an environment or a memory image.
func ofKernel(f *os.File) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(int(f.Fd()), &st) != nil {
		return false
	}
	return st.Type == unix.PROC_SUPER_MAGIC || st.Type == unix.SYSFS_MAGIC
}

// nameOf returns where an open file is, without symbolic links; "" if that cannot be found out.
func nameOf(f *os.File) string {
	name, err := os.Readlink("/proc/self/fd/" + strconv.Itoa(int(f.Fd())))
	if err != nil {
		return ""
	}
	return name
}
