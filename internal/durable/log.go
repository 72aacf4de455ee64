package durable

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"rnix/types"
)

// Log is a file of lines that only grows. It is not safe for concurrent use: its owner serialises
// the calls.
//
// Once a write or a sync has failed, nobody knows what is on the disk: the kernel may have dropped
// the pages and would report success the next time. So the log is poisoned: every later call
// returns STORAGE with the first error in its chain. To go on, close it and open it again, which
// looks at what is really there. What a failed sync was for is cut off: it could still be read, and
// would be believed, though no later sync writes it.
type Log struct {
	fs     FS
	path   string
	file   File
	size   int64
	safe   int64 // what was there when the log was opened, or at the last sync
	rests  bool  // there are lines of others that may wait for a sync, and a batch says that they do not
	synced bool  // everything up to size is on the disk
	named  bool  // so are the names of the file and of its directory
	poison error
}

// OpenLog opens the log at path for appending, and creates it and its directory if they are missing
// (the directory above must exist). It reads the whole log and gives each line to check; a torn tail
// is cut off and described by the Damage that is returned beside a usable log. Damage in the middle
// is an error of code STORAGE with a *Damage in its chain: nothing is changed, since lines that are
// appended behind it would never be read.
//
// With a nil check only the end of the file is looked at, so that opening a long log is cheap.
func OpenLog(fsys FS, path string, check Check) (*Log, *Damage, error) {
	return OpenBatches(fsys, path, check, nil)
}

// OpenBatches is OpenLog for a log whose lines are appended several at a time and say themselves which
// of them begins a batch. A power failure may have kept the end of the last batch and not its middle:
// so damage behind which begins is true for no line counts as a torn tail, is kept beside the file
// and cut off. begins is asked about any bytes, and is true only for a line that is whole. Lines that were
// there are synced before the first Append writes, so that each batch rests on what is on the disk.
func OpenBatches(fsys FS, path string, check Check, begins func(line []byte) bool) (*Log, *Damage, error) {
	dir := filepath.Dir(path)
	if err := fsys.Mkdir(dir, DirPerm); err != nil && !errors.Is(err, os.ErrExist) {
		return nil, nil, wrap("OpenLog", path, err)
	}
	return openBatches(fsys, path, os.O_CREATE, check, begins)
}

// ReopenBatches is OpenBatches for a log that is there. One that is not is NOT_FOUND, and nothing is made.
func ReopenBatches(fsys FS, path string, check Check, begins func(line []byte) bool) (*Log, *Damage, error) {
	return openBatches(fsys, path, 0, check, begins)
}

func openBatches(fsys FS, path string, create int, check Check, begins func(line []byte) bool) (*Log, *Damage, error) {
	f, err := fsys.OpenFile(path, os.O_RDWR|os.O_APPEND|create, FilePerm)
	if err != nil {
		return nil, nil, wrap("OpenLog", path, err)
	}
	l := &Log{fs: fsys, path: path, file: f}
	damage, err := l.repair(check, begins)
	if err != nil {
		f.Close()
		return nil, damage, err
	}
	l.safe, l.rests = l.size, begins != nil && l.size > 0
	return l, damage, nil
}

// repair finds the good end of the file and cuts off a torn tail.
func (l *Log) repair(check Check, begins func([]byte) bool) (d *Damage, err error) {
	if check == nil {
		l.size, d, err = scanTail(l.file, l.path)
	} else {
		l.size, d, err = Scan(l.file, l.path, check)
	}
	if err == nil && d != nil && !d.Tail && begins != nil {
		err = l.lastBatch(d, begins)
	}
	switch {
	case err != nil:
		return nil, wrap("OpenLog", l.path, err)
	case d == nil:
		return nil, nil
	case !d.Tail:
		return d, &types.SyscallError{Syscall: "OpenLog", Code: types.ErrStorage, Err: d}
	}
	if err := l.keep(d); err != nil {
		return d, err
	}
	if err := l.file.Truncate(l.size); err != nil {
		return d, wrap("OpenLog", l.path, err)
	}
	d.Cut = true
	return d, nil
}

// lastBatch makes d a torn tail that reaches to the end of the file, if no batch begins behind it.
func (l *Log) lastBatch(d *Damage, begins func([]byte) bool) error {
	info, err := l.file.Stat()
	if err != nil {
		return err
	}
	behind := d.Offset + d.Bytes
	br := bufio.NewReader(io.NewSectionReader(l.file, behind, info.Size()-behind))
	var long []byte
	for {
		line, whole, err := readLine(br, &long)
		switch {
		case err == errTooLong || whole && begins(line):
			return nil
		case err != nil:
			return err
		case !whole:
			d.Tail, d.Bytes = true, info.Size()-d.Offset
			return nil
		}
	}
}

// keep saves a tail before it is cut, if there is a whole line in it: that was not torn while it was
// appended, so somebody may have edited it, or the disk has changed it.
func (l *Log) keep(d *Damage) error {
	data := make([]byte, d.Bytes)
	if _, err := l.file.ReadAt(data, d.Offset); err != nil && err != io.EOF {
		return wrap("OpenLog", l.path, err)
	}
	first, rest, _ := bytes.Cut(data, []byte{'\n'})
	if len(rest) == 0 && (len(first) == len(data) || bytes.IndexByte(first, 0) >= 0) {
		return nil
	}
	d.Saved = fmt.Sprintf("%s.cut-%d", l.path, d.Offset)
	return WriteFile(l.fs, d.Saved, data, Durable)
}

// scanTail finds the last newline of a file, going backwards.
func scanTail(f File, path string) (good int64, d *Damage, err error) {
	info, err := f.Stat()
	if err != nil {
		return 0, nil, err
	}
	buf := make([]byte, min(64<<10, info.Size()))
	for end := info.Size(); end > 0; {
		start := max(0, end-int64(len(buf)))
		block := buf[:end-start]
		if _, err := f.ReadAt(block, start); err != nil && err != io.EOF {
			return 0, nil, err
		}
		if i := bytes.LastIndexByte(block, '\n'); i >= 0 {
			good = start + int64(i) + 1
			break
		}
		end = start
	}
	if good == info.Size() {
		return good, nil, nil
	}
	return good, &Damage{File: path, Offset: good, Bytes: info.Size() - good, Reason: "the line has no end", Tail: true}, nil
}

// Append writes one or more lines, each with its newline, in one write. They are not durable before
// Sync has returned. Bytes that could not be read back (no newline at the end, a NUL byte, a line
// over MaxLine) are INVALID and nothing is written.
func (l *Log) Append(lines []byte) error {
	if l.poison != nil {
		return l.poison
	}
	if err := l.writable(lines); err != nil {
		return err
	}
	if l.rests { // whoever wrote what was there may have been killed before it was synced
		if err := l.file.Sync(); err != nil {
			return l.fail("sync", err)
		}
		l.rests = false
	}
	n, err := l.file.Write(lines)
	if err == nil && n < len(lines) {
		err = io.ErrShortWrite
	}
	if err != nil {
		return l.fail("write", err)
	}
	l.size += int64(n)
	l.synced = false
	return nil
}

func (l *Log) writable(lines []byte) error {
	if len(lines) == 0 || lines[len(lines)-1] != '\n' {
		return types.Errorf(types.ErrInvalid, "Append", l.path, "the last line has no end")
	}
	if bytes.IndexByte(lines, 0) >= 0 {
		return types.Errorf(types.ErrInvalid, "Append", l.path, "a line holds a NUL byte")
	}
	for rest := lines; len(rest) > MaxLine; {
		i := bytes.IndexByte(rest, '\n')
		if i > MaxLine {
			return types.Errorf(types.ErrInvalid, "Append", l.path, "a line of %d bytes is over the limit of %d MiB", i, MaxLine>>20)
		}
		rest = rest[i+1:]
	}
	return nil
}

// Sync makes what was appended durable. The first call after OpenLog also makes the names of the
// file and of its directory durable, whoever created them: a run before this one may have been
// killed before it could.
func (l *Log) Sync() error {
	if l.poison != nil {
		return l.poison
	}
	if l.synced && l.named {
		return nil
	}
	if err := l.file.Sync(); err != nil {
		_ = l.file.Truncate(l.safe) // best effort: else it can be read until power fails, and no later sync saves it
		return l.fail("sync", err)
	}
	l.synced, l.safe = true, l.size
	if !l.named {
		dir := filepath.Dir(l.path)
		for _, d := range []string{dir, filepath.Dir(dir)} {
			if err := l.fs.SyncDir(d); err != nil {
				return l.fail("sync of "+d, err)
			}
		}
		l.named = true
	}
	return nil
}

func (l *Log) fail(what string, err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok && e.Path == l.path && e == err { // it is named once
		err = e.Err
	}
	l.poison = types.Errorf(types.ErrStorage, "Append", l.path,
		"%s: %w; nothing more is written to this file until it is opened again", what, err)
	return l.poison
}

// Size returns the length in bytes of what was appended, durable or not.
func (l *Log) Size() int64 { return l.size }

// Path returns the name of the file.
func (l *Log) Path() string { return l.path }

// Close closes the file without a Sync.
func (l *Log) Close() error {
	if l.poison == nil {
		l.poison = types.Errorf(types.ErrInvalid, "Append", l.path, "the log is closed")
	}
	return wrap("Close", l.path, l.file.Close())
}
