package agent

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"strconv"
	"strings"
	"syscall"
	"unicode/utf8"

	"rnix/types"
)

// errNotFile is the cause when a path names something that cannot be read as a file.
var errNotFile = errors.New("not a regular file")

// insideFS is the tree below a root. Symbolic links are followed within it and refused when they
// lead out; opening a FIFO does not wait.
type insideFS struct{ root *os.Root }

func (f insideFS) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	return f.root.OpenFile(name, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}

// readFile reads at most limit bytes of a regular file.
func readFile(path string, limit int) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	return readAll(f, limit)
}

// readFS is readFile in a file system.
func readFS(fsys fs.FS, name string, limit int) ([]byte, error) {
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

// cut returns text as UTF-8 of at most limit bytes; what was longer ends on a character's edge and
// with a marker.
func cut(text []byte, limit int) string {
	if len(text) <= limit {
		return strings.ToValidUTF8(string(text), "\ufffd")
	}
	end := limit
	for end > limit-utf8.UTFMax && !utf8.RuneStart(text[end]) {
		end--
	}
	return strings.ToValidUTF8(string(text[:end]), "\ufffd") +
		"\n\n[cut here: the file is longer than " + itoa(limit>>10) + " KiB]"
}

// cause is what went wrong with a file, without the path, which the caller names.
func cause(err error) error {
	var pe *fs.PathError
	if errors.As(err, &pe) {
		return pe.Err
	}
	return err
}

func codeOf(err error) types.ErrCode {
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return types.ErrNotFound
	case errors.Is(err, fs.ErrPermission):
		return types.ErrPermission
	}
	return types.ErrInvalid
}

// missing reports whether there is no such file, which for most files here is no mistake.
func missing(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ENOTDIR)
}

func itoa(i int) string { return strconv.Itoa(i) }
