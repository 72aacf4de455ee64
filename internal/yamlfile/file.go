package yamlfile

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
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

// Misnamed is the error for a file that is missing, while there is one that is never read and was surely meant.
type Misnamed struct{ Is, Want string } // names without directories

func (m Misnamed) Error() string {
	return "there is " + m.Is + " in its place, a name that is never read; rename it to " + m.Want + ", or remove it"
}

// ReadFile returns the first limit bytes of a regular file; anything else is an error.
func ReadFile(path string, limit int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

// ReadFixed is ReadFile for a file that is looked for under one name only. If there is no NAME.yaml, but a NAME.yml, the error is a Misnamed.
func ReadFixed(path string, limit int) ([]byte, error) {
	b, err := ReadFile(path, limit)
	return b, misnamed(err, path, os.Stat)
}

// ReadFS is ReadFixed in a file system.
func ReadFS(fsys fs.FS, name string, limit int) ([]byte, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, misnamed(err, name, func(name string) (fs.FileInfo, error) { return fs.Stat(fsys, name) })
	}
	return readAll(f, limit)
}

// misnamed returns err, which says why a file cannot be opened, or a Misnamed; nil stays nil.
func misnamed(err error, name string, stat func(string) (fs.FileInfo, error)) error {
	stem, ok := strings.CutSuffix(name, ".yaml")
	if err == nil || !ok || !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if st, serr := stat(stem + ".yml"); serr != nil || !st.Mode().IsRegular() {
		return err
	}
	return Misnamed{filepath.Base(stem) + ".yml", filepath.Base(name)}
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
