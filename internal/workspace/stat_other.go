//go:build !linux

package workspace

import (
	"fmt"
	"io/fs"
)

// fileStat is what tells one content of a file from another without reading it.
type fileStat struct {
	Mode  fs.FileMode `json:"m"`
	Size  int64       `json:"s"`
	Mtime int64       `json:"t"` // nanoseconds
	Ctime int64       `json:"c"` // not known here
	Inode uint64      `json:"i"` // not known here
}

// statOf describes a file. Which file system it is on is not known here.
func statOf(info fs.FileInfo) (s fileStat, device uint64) {
	return fileStat{Mode: info.Mode(), Size: info.Size(), Mtime: info.ModTime().UnixNano()}, 0
}

// identity describes a file so that another content is described otherwise. Of a directory nothing but
// its being one is known.
func identity(info fs.FileInfo) string {
	if info.IsDir() {
		return "d"
	}
	return fmt.Sprint(info.Mode(), info.Size(), info.ModTime().UnixNano())
}

// ownerOf returns whose a file is, which is not known here.
func ownerOf(fs.FileInfo) (user, group int, known bool) { return 0, 0, false }
