package durable

import (
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"rnix/types"
)

const counterVersion = 1

// MaxCounter is the largest number that is believed: far above what can be reached by counting, and far
// below where numbers would begin anew.
const MaxCounter = 1 << 62

// Counter hands out numbers that are never handed out again, not even after kill -9 or power loss.
// It reserves them in blocks: one durable write for many numbers. A crash skips what is left of a
// block. Safe for concurrent use; Next may write to the disk, so no lock may be held around it.
type Counter struct {
	fs    FS
	path  string
	block uint64

	mu   sync.Mutex // leaf; held while a block is reserved, which is what others would wait for
	next uint64     // +checklocks:mu
	// +checklocks:mu
	reserved uint64 // first number that is not ours yet
}

// counterFile is the file. Part of the on-disk format.
type counterFile struct {
	V    int     `json:"v"`
	Next uint64  `json:"next"`          // no number below it may be handed out any more
	Sum  *uint32 `json:"sum,omitempty"` // CRC-32C of "v next"; programs before it wrote none, and all of them version 1
}

// sum is the checksum of the file's numbers.
func (f counterFile) sum() uint32 {
	return crc32.Checksum(fmt.Appendf(nil, "%d %d", f.V, f.Next), crc32.MakeTable(crc32.Castagnoli))
}

// encodeCounter returns the content of the file of a counter that goes on with next.
func encodeCounter(next uint64) []byte {
	f := counterFile{V: counterVersion, Next: next}
	sum := f.sum()
	f.Sum = &sum
	b, _ := json.Marshal(f) // numbers always marshal
	return append(b, '\n')
}

// ReadCounter returns the number with which the counter in a file goes on. The error is an ErrNotCounter if the file is damaged; it has
// the code VERSION if a newer program has written it. One changed bit is always found, unless it changes nothing.
func ReadCounter(fsys FS, path string) (next uint64, err error) {
	b, err := ReadFile(fsys, path)
	if err != nil {
		return 0, err
	}
	var f counterFile
	damaged := json.Unmarshal(b, &f) != nil || f.V < 1 || f.Next < 1 || f.Next > MaxCounter
	if f.Sum == nil {
		damaged = damaged || f.V != 1
	} else {
		damaged = damaged || *f.Sum != f.sum()
	}
	switch {
	case damaged:
		return 0, types.Errorf(types.ErrStorage, "OpenCounter", path, "%w (%d bytes)", ErrNotCounter, len(b))
	case f.V > counterVersion:
		return 0, types.Errorf(types.ErrVersion, "OpenCounter", path,
			"written in format %d by a newer program, this one reads up to %d", f.V, counterVersion)
	}
	return f.Next, nil
}

// ErrNotCounter says that the file of a counter is damaged.
var ErrNotCounter = errors.New("it is not a counter")

// OpenCounter opens the counter in the file at path; the directory must exist. The first number is
// at least 1, at least min, and above every number handed out before. A file that is not a counter
// is an error that names it, an ErrNotCounter: numbers might be used twice.
func OpenCounter(fsys FS, path string, block, min uint64) (*Counter, error) {
	c := &Counter{fs: fsys, path: path, block: max(block, 1), next: max(min, 1)}
	next, err := ReadCounter(fsys, path)
	if err != nil && types.CodeOf(err) != types.ErrNotFound {
		return nil, err
	}
	c.next = max(c.next, next)
	c.reserved = c.next
	return c, nil
}

// MendCounter is OpenCounter for whoever knows that every number below min was handed out and none above it: a file that is not a counter
// is moved aside, and mended says what was done.
func MendCounter(fsys FS, path string, block, min uint64) (c *Counter, mended string, err error) {
	c, err = OpenCounter(fsys, path, block, min)
	if !errors.Is(err, ErrNotCounter) {
		return c, "", err
	}
	aside := path + ".damaged-" + time.Now().UTC().Format("20060102T150405.000000000")
	if err = fsys.Rename(path, aside); err != nil {
		return nil, "", wrap("OpenCounter", path, err)
	}
	c, err = OpenCounter(fsys, path, block, min)
	return c, fmt.Sprintf("%s was damaged, and counts on from %d; what it was is now %s", path, min, aside), err
}

// Next returns the next number. An error of the disk leaves the counter as it was; the next call
// tries again.
func (c *Counter) Next() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == c.reserved {
		if err := WriteFile(c.fs, c.path, encodeCounter(c.next+c.block), Durable); err != nil {
			return 0, err
		}
		c.reserved = c.next + c.block
	}
	n := c.next
	c.next++
	return n, nil
}

// Settle gives back what is left of the block, so that the numbers go on without a gap after a
// graceful stop. Next may be called afterwards; it reserves anew.
func (c *Counter) Settle() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == c.reserved {
		return nil
	}
	if err := WriteFile(c.fs, c.path, encodeCounter(c.next), Durable); err != nil {
		return err
	}
	c.reserved = c.next
	return nil
}

// Raise makes the next number at least min.
func (c *Counter) Raise(min uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.next = max(c.next, min)
	c.reserved = max(c.reserved, c.next)
}
