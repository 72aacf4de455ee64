package workspace

import (
	"fmt"
	"io/fs"
	"syscall"
)

// fileStat is what tells one content of a file from another without reading it.
type fileStat struct {
	Mode  fs.FileMode `json:"m"`
	Size  int64       `json:"s"`
	Mtime int64       `json:"t"` // nanoseconds
	Ctime int64       `json:"c"` // nanoseconds
	Inode uint64      `json:"i"`
}

// statOf describes a file, and returns the file system that it is on.
func statOf(info fs.FileInfo) (s fileStat, device uint64) {
	s = fileStat{Mode: info.Mode(), Size: info.Size(), Mtime: info.ModTime().UnixNano()}
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		s.Ctime, s.Inode, device = st.Ctim.Nano(), st.Ino, st.Dev
	}
	return s, device
}

// identity describes a file so that another one, or another content, is described otherwise. Of a
// directory only which one it is counts.
func identity(info fs.FileInfo) string {
	s, device := statOf(info)
	if info.IsDir() {
		return fmt.Sprint("d", device, s.Inode)
	}
	return fmt.Sprint(device, s.Inode, s.Mode, s.Size, s.Mtime, s.Ctime)
}

// ownerOf returns whose a file is.
func ownerOf(info fs.FileInfo) (user, group int, known bool) {
	if st, ok := info.Sys().(*syscall.Stat_t); ok {
		return int(st.Uid), int(st.Gid), true
	}
	return 0, 0, false
}
