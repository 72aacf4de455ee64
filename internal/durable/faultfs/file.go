package faultfs

import (
	"io"
	"io/fs"
	"os"
	"slices"
	"time"

	"rnix/internal/durable"
)

// file is an open file.
type file struct {
	fs   *FS
	gen  int
	name string
	node *node
	flag int
	pos  int64
}

// OpenFile opens a file.
func (f *FS) OpenFile(name string, flag int, _ fs.FileMode) (durable.File, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	op := "open"
	if flag&os.O_CREATE != 0 {
		op = "create"
	}
	if err := f.call(op, name); err != nil {
		return nil, err
	}
	parent, base, n := f.find(name)
	switch {
	case n == nil && (flag&os.O_CREATE == 0 || parent == nil || !parent.dir):
		return nil, pathError(op, name, fs.ErrNotExist)
	case n != nil && flag&os.O_EXCL != 0:
		return nil, pathError(op, name, fs.ErrExist)
	case n == nil:
		f.made++
		n = &node{id: f.made, mtime: time.Now()}
		parent.change(change{name: base, node: n})
		f.changed(op, name, nil, edit{})
	case flag&os.O_TRUNC != 0:
		n.edit(edit{cut: true})
		f.changed("truncate", name, nil, edit{})
	}
	return &file{fs: f, gen: f.gen, name: name, node: n, flag: flag}, nil
}

// enter locks the file system and counts a call of this file. The caller unlocks it.
//
// +checklocksacquire:f.fs.mu
func (f *file) enter(op string) error {
	f.fs.mu.Lock()
	if f.gen != f.fs.gen {
		return pathError(op, f.name, ErrCrashed)
	}
	if op == "" {
		return nil
	}
	return f.fs.call(op, f.name)
}

func (f *file) Read(b []byte) (int, error) {
	n, err := f.ReadAt(b, f.pos)
	f.pos += int64(n)
	if n > 0 {
		err = nil
	}
	return n, err
}

func (f *file) ReadAt(b []byte, off int64) (int, error) {
	defer f.fs.mu.Unlock()
	if err := f.enter("read"); err != nil {
		return 0, err
	}
	if off >= int64(len(f.node.data)) {
		return 0, io.EOF
	}
	n := copy(b, f.node.data[off:])
	if n < len(b) {
		return n, io.EOF
	}
	return n, nil
}

func (f *file) Write(b []byte) (int, error) {
	defer f.fs.mu.Unlock()
	err := f.enter("write")
	if err != nil && !(f.fs.fault.Short && f.gen == f.fs.gen) {
		return 0, err
	}
	if err != nil {
		b = b[:len(b)/2]
	}
	if f.flag&os.O_APPEND != 0 {
		f.pos = int64(len(f.node.data))
	}
	e := edit{off: f.pos, bytes: slices.Clone(b)}
	f.node.edit(e)
	f.pos += int64(len(b))
	f.fs.changed("write", f.name, f.node, e)
	return len(b), err
}

func (f *file) Truncate(size int64) error {
	defer f.fs.mu.Unlock()
	if err := f.enter("truncate"); err != nil {
		return err
	}
	f.node.edit(edit{off: size, cut: true})
	f.fs.changed("truncate", f.name, nil, edit{})
	return nil
}

func (f *file) Sync() error {
	defer f.fs.mu.Unlock()
	if err := f.enter("sync"); err != nil {
		if f.gen == f.fs.gen {
			for i := range f.node.waiting {
				f.node.waiting[i].doomed = true
			}
		}
		return err
	}
	f.node.sync()
	f.fs.changed("sync", f.name, nil, edit{})
	return nil
}

func (f *file) Stat() (fs.FileInfo, error) {
	defer f.fs.mu.Unlock()
	if err := f.enter("stat"); err != nil {
		return nil, err
	}
	return info(f.name, f.node), nil
}

func (f *file) Close() error {
	defer f.fs.mu.Unlock()
	return f.enter("")
}

// fileInfo describes a node as it was.
type fileInfo struct {
	name  string
	size  int64
	dir   bool
	mtime time.Time
}

func info(name string, n *node) fs.FileInfo {
	return fileInfo{name: name, size: int64(len(n.data)), dir: n.dir, mtime: n.mtime}
}

func (i fileInfo) Name() string       { return i.name }
func (i fileInfo) Size() int64        { return i.size }
func (i fileInfo) ModTime() time.Time { return i.mtime }
func (i fileInfo) IsDir() bool        { return i.dir }
func (i fileInfo) Sys() any           { return nil }
func (i fileInfo) Mode() fs.FileMode {
	if i.dir {
		return fs.ModeDir | durable.DirPerm
	}
	return durable.FilePerm
}
