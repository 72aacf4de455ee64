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
	info, err := os.Stat(path) // before it is opened, which some devices take for a request
	if err != nil {
		return nil, nil, err
	}
	if err := readable(path, info, most); err != nil {
		return nil, nil, err
	}
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, nil, err
	}
	defer f.Close()
	if info, err = f.Stat(); err == nil { // it may have been replaced
		err = readable(path, info, most)
	}
	if err != nil {
		return nil, nil, err
	}
	b, err := io.ReadAll(io.LimitReader(f, most+1))
	if err == nil && int64(len(b)) > most { // it grows
		err = tooLong(path, most)
	}
	return b, info, err
}

// readable returns why a file is not to be read.
func readable(path string, info fs.FileInfo, most int64) error {
	switch {
	case !info.Mode().IsRegular():
		return &fs.PathError{Op: "read", Path: path, Err: errors.New("not a regular file: remove it")}
	case info.Size() > most:
		return tooLong(path, most)
	}
	return nil
}

func tooLong(path string, most int64) error {
	return &fs.PathError{Op: "read", Path: path, Err: fmt.Errorf("longer than %d bytes: remove it, git makes it anew or does without", most)}
}
