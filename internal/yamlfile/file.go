package yamlfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// errNotFile is the cause when a path names something that cannot be read as a file.
var errNotFile = errors.New("not a regular file")

// inside is the tree below a root.
type inside struct{ root *os.Root }

func (f inside) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// Inside returns the tree below root for reading. Symbolic links are followed within it and refused
// when they lead out; opening a FIFO does not wait. It lives as long as root is open.
func Inside(root *os.Root) fs.FS { return inside{root} }

// ReadFile returns the first limit bytes of a regular file; anything else is an error.
func ReadFile(path string, limit int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

// ReadFS is ReadFile in a file system.
func ReadFS(fsys fs.FS, name string, limit int) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

func readAll(f fs.File, limit int) ([]byte, error) {
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, errNotFile
	}
	return io.ReadAll(io.LimitReader(f, int64(limit)))
}

// Missing reports whether there is no such file, which for most files is no mistake.
func Missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

// Cause is what went wrong with a file, without the path, for callers who name it themselves.
func Cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}
