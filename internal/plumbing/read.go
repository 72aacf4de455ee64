package plumbing

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"
)

// MostIndex is how long an index may be that is read: one of two million files, of some hundred bytes each. An agent can write one, and it is held in memory.
const MostIndex = 1 << 28

// MostText is how long the small files of git may be that are read: locks, references, why a work tree is locked.
const MostText = 1 << 16

// ReadFile reads a file of a repository, and returns what it was. Agents can write there: a pipe in its place is not waited for, and what is not
// a regular file (as /dev/zero, to which a link can lead) or has more than most bytes is an error, a *fs.PathError.
func ReadFile(path string, most int64) ([]byte, fs.FileInfo, error) {
	f, info, err := Open(path)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info.Size() > most {
		return nil, nil, tooLong(path, most)
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most { // it grows
		err = tooLong(path, most)
	}
	return b, info, err
}

// ReadText is ReadFile for one of git's small files, for callers who want its text alone.
func ReadText(path string) (string, error) {
	b, _, err := ReadFile(path, MostText)
	return string(b), err
}

// errIrregular is why a pipe or a device is not read at all.
var errIrregular = errors.New("not a regular file: remove it")

// Open opens a regular file for reading. It waits for nobody, whatever has taken the file's place.
func Open(path string) (*os.File, fs.FileInfo, error) { return open(path, os.Stat, os.OpenFile) }

func open(path string, stat func(string) (fs.FileInfo, error), opens func(string, int, fs.FileMode) (*os.File, error)) (*os.File, fs.FileInfo, error) {
	info, err := stat(path) // before it is opened, which some devices take for a request
	if err != nil {
		return nil, nil, err
	}
	if info.IsDir() {
		return nil, nil, &fs.PathError{Op: "read", Path: path, Err: syscall.EISDIR}
	}
	irregular := &fs.PathError{Op: "read", Path: path, Err: errIrregular}
	if !info.Mode().IsRegular() {
		return nil, nil, irregular
	}
	f, err := opens(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	if info, err = f.Stat(); err == nil && !info.Mode().IsRegular() { // it was replaced
		err = irregular
	}
	if err != nil {
		_ = f.Close() // nothing was written
		return nil, nil, err
	}
	return f, info, nil
}

func tooLong(path string, most int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("longer than %d bytes: remove it, git makes it anew or does without", most)}
}
