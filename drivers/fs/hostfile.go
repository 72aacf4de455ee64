package fs

import (
	"context"
	"crypto/sha256"
	"errors"
	"hash"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"

	"rnix/types"
	"rnix/vfs"
)

// maxRead is how much one Read returns at most.
const maxRead = 64 << 20

// hostFile is /dev/fs/<path>: a file of the host, or a directory as names.
type hostFile struct {
	device *Device
	path   string
	*Content
}

// BindCaller opens the file for its caller.
func (h *hostFile) BindCaller(c vfs.Caller) error {
	roots, err := h.device.own.callerRoots(c)
	if err != nil {
		return err
	}
	defer roots.Close()
	h.device.seen.Bind(c)
	h.Content, err = OpenContent(roots, h.path, func(p Place, sum Sum) { h.device.seen.Read(c.PID, p.Abs, sum) })
	return err
}

// Read, Close and Stat refuse or pass where no caller was bound.

func (h *hostFile) Read(n int) ([]byte, error) {
	if h.Content == nil {
		return nil, errUnbound(h.path)
	}
	return h.Content.Read(n)
}

func (h *hostFile) ReadInto(buf []byte) (int, error) {
	if h.Content == nil {
		return 0, errUnbound(h.path)
	}
	return h.Content.ReadInto(buf)
}

func (h *hostFile) Close() error {
	if h.Content == nil {
		return nil
	}
	return h.Content.Close()
}

func (h *hostFile) Stat() (vfs.FileStat, error) {
	if h.Content == nil {
		return vfs.FileStat{}, errUnbound(h.path)
	}
	return h.Content.Stat()
}

// Write is always refused.
func (h *hostFile) Write(context.Context, []byte) error {
	return types.Errorf(types.ErrPermission, "Write", Path+shorten(h.path), "/dev/fs is read-only: write through /dev/workspace")
}

func errUnbound(path string) error {
	return types.Errorf(types.ErrPermission, "Read", Path+shorten(path), "the file was opened for no process")
}

// Content reads a file from its beginning to its end, or the names in a directory, one per line,
// those of directories with a slash behind.
// Safe for concurrent use.
type Content struct {
	place Place
	stat  vfs.FileStat

	mu    sync.Mutex
	whole func(Place, Sum) // +checklocks:mu
	// +checklocks:mu
	file *os.File // nil for a directory, and once closed
	// +checklocks:mu
	src io.Reader // nil once closed
	// +checklocks:mu
	sum hash.Hash // of what was read so far; nil for a directory
}

// OpenContent opens path below roots. whole, unless nil, is called when a file has been read to its
// end, with the hash of all of it.
func OpenContent(roots *Roots, path string, whole func(Place, Sum)) (*Content, error) {
	f, info, place, err := roots.Open(path)
	if err != nil {
		return nil, err
	}
	c := &Content{place: place, whole: whole}
	c.stat = vfs.FileStat{Name: filepath.Base(place.Abs), Size: info.Size(), Mode: "r--", Mtime: info.ModTime(), Type: "file"}
	if !info.IsDir() {
		c.file, c.src, c.sum = f, f, sha256.New()
		return c, nil
	}
	defer f.Close()
	entries, err := f.ReadDir(-1)
	if err != nil {
		return nil, Failure("Open", path, err)
	}
	names := make([]string, 0, len(entries))
	for _, e := range entries {
		switch {
		case place.guard.named(filepath.Join(place.Abs, e.Name())) != nil:
		case e.IsDir():
			names = append(names, e.Name()+"/")
		default:
			names = append(names, e.Name())
		}
	}
	slices.Sort(names)
	text := strings.Join(names, "\n")
	if text != "" {
		text += "\n"
	}
	c.src, c.stat.IsDir, c.stat.Type, c.stat.Size = strings.NewReader(text), true, "dir", int64(len(text))
	return c, nil
}

// Read returns the next bytes. It refuses to return more than 64 MiB at once.
func (c *Content) Read(length int) ([]byte, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.src == nil {
		return nil, errClosed(c.place.Name)
	}
	if length > 0 {
		buf := make([]byte, min(length, maxRead, max(int(min(c.stat.Size, maxRead)), 512)))
		n, err := c.readLocked(buf)
		return buf[:n], err
	}
	all, err := io.ReadAll(io.LimitReader(c.src, maxRead+1))
	if err == nil && len(all) <= maxRead {
		err = io.EOF
	}
	switch err := c.noteLocked(all, err); {
	case err != nil && !errors.Is(err, io.EOF):
		return nil, err
	case len(all) > maxRead:
		return nil, types.Errorf(types.ErrExhausted, "Read", c.place.Name, "more than %d MiB are left: read in pieces, by giving a length", maxRead>>20)
	case len(all) == 0:
		return nil, io.EOF
	}
	return all, nil
}

// ReadInto is Read into a buffer of the caller's.
func (c *Content) ReadInto(buf []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.src == nil {
		return 0, errClosed(c.place.Name)
	}
	return c.readLocked(buf)
}

// +checklocks:c.mu
func (c *Content) readLocked(buf []byte) (int, error) {
	n, err := c.src.Read(buf)
	return n, c.noteLocked(buf[:n], err)
}

// noteLocked adds what was read to the hash, tells of the end of the file, and returns err as the file's.
//
// +checklocks:c.mu
func (c *Content) noteLocked(read []byte, err error) error {
	if c.sum != nil {
		c.sum.Write(read)
		if errors.Is(err, io.EOF) && c.whole != nil {
			c.whole(c.place, Sum(c.sum.Sum(nil)))
			c.whole = nil
		}
	}
	if err != nil && !errors.Is(err, io.EOF) {
		return Failure("Read", c.place.Name, err)
	}
	return err
}

// Close closes the file.
func (c *Content) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.src = nil
	if c.file != nil {
		_ = c.file.Close() // opened for reading only
		c.file = nil
	}
	return nil
}

// Stat describes the file as it was when it was opened.
func (c *Content) Stat() (vfs.FileStat, error) { return c.stat, nil }

func errClosed(name string) error {
	return types.Errorf(types.ErrInvalid, "Read", name, "file is closed")
}
