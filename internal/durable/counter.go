package durable

import (
	"encoding/json"
	"sync"

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
	V    int    `json:"v"`
	Next uint64 `json:"next"` // no number below it may be handed out any more
}

// OpenCounter opens the counter in the file at path; the directory must exist. The first number is
// at least 1, at least min, and above every number handed out before. A file that is not a counter
// is an error that names it: numbers might be used twice.
func OpenCounter(fsys FS, path string, block, min uint64) (*Counter, error) {
	c := &Counter{fs: fsys, path: path, block: max(block, 1), next: max(min, 1)}
	b, err := ReadFile(fsys, path)
	switch {
	case types.CodeOf(err) == types.ErrNotFound:
	case err != nil:
		return nil, err
	default:
		var f counterFile
		if err := json.Unmarshal(b, &f); err != nil || f.V < 1 || f.Next < 1 || f.Next > MaxCounter {
			return nil, types.Errorf(types.ErrStorage, "OpenCounter", path,
				"not a counter (%d bytes): move it away to count on from %d, the lowest number that nothing on disk uses", len(b), c.next)
		}
		if f.V > counterVersion {
			return nil, types.Errorf(types.ErrVersion, "OpenCounter", path,
				"written in format %d by a newer program, this one reads up to %d", f.V, counterVersion)
		}
		c.next = max(c.next, f.Next)
	}
	c.reserved = c.next
	return c, nil
}

// Next returns the next number. An error of the disk leaves the counter as it was; the next call
// tries again.
func (c *Counter) Next() (uint64, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.next == c.reserved {
		b, _ := json.Marshal(counterFile{V: counterVersion, Next: c.next + c.block}) // numbers always marshal
		if err := WriteFile(c.fs, c.path, append(b, '\n'), Durable); err != nil {
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
	b, _ := json.Marshal(counterFile{V: counterVersion, Next: c.next}) // numbers always marshal
	if err := WriteFile(c.fs, c.path, append(b, '\n'), Durable); err != nil {
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
