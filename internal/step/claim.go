package step

import (
	"errors"
	"io/fs"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// Claim is the right to write below a data directory. One process has it at a time, until Close or until it ends, however it ends.
// It is a lock on the directory of the histories itself, which nobody can remove without them, and on a file beside it, which
// says to older programs that somebody is there.
type Claim struct {
	fs   durable.FS
	dir  string
	hold durable.Lock // on the directory of the histories

	mu sync.Mutex
	// file is nil where it is missing and the file system is read-only.
	// +checklocks:mu
	file durable.Lock
	lost error // +checklocks:mu
	gone chan struct{}

	begun time.Time
	asked atomic.Int64 // when the last look began that found the histories where they were, in nanoseconds since begun; 0 = none has
}

// glance is how long a look at the directory is good for who appends to a file of it that is open. Taking the directory away does not send such a
// record elsewhere, so that a look for each would only say a moment earlier that it was taken.
const glance = time.Millisecond

// TakeClaim takes the right to write below a data directory, which it makes if it is missing. If another process has it, the error
// has code CONFLICT and names that process.
func TakeClaim(fsys durable.FS, dataDir string) (*Claim, error) {
	dir := filepath.Join(dataDir, stepsDir)
	if err := durable.MkdirAll(fsys, dir); err != nil {
		return nil, err
	}
	hold, err := fsys.Lock(dir)
	if err == nil {
		file, ferr := fsys.Lock(filepath.Join(dataDir, lockFile))
		if durable.ReadOnly(ferr) || errors.Is(ferr, fs.ErrNotExist) { // it cannot be made: Keep does, when it can
			file, ferr = nil, nil
		}
		if ferr == nil {
			return &Claim{fs: fsys, dir: dataDir, hold: hold, file: file, gone: make(chan struct{}), begun: time.Now()}, nil
		}
		err = ferr
		hold.Close()
	}
	if types.CodeOf(err) == types.ErrConflict {
		err = types.Errorf(types.ErrConflict, "Open", dataDir, "the data directory is in use; stop that daemon or choose another directory with RNIX_DATA_DIR: %w", err)
	}
	return nil, err
}

// Check returns an error with code CONFLICT, and always the same from then on, if the histories are no longer where they were claimed:
// somebody has removed, moved or replaced the data directory. Whatever is written then would be lost, or be among the files of
// another. It costs one call of the system.
func (c *Claim) Check() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.lost != nil {
		return c.lost
	}
	at := time.Since(c.begun)
	err := c.hold.Check()
	if types.CodeOf(err) != types.ErrConflict {
		c.asked.Store(int64(at))
		return nil // as far as can be seen
	}
	c.asked.Store(0)
	c.lost = types.Errorf(types.ErrConflict, "Write", c.dir, "the data directory was removed, moved or replaced while it was in use; move it back, then start again: %w", err)
	close(c.gone)
	return c.lost
}

// CheckOpen is Check for who appends to an open file: what Check has found within the last millisecond stands.
func (c *Claim) CheckOpen() error {
	if last := c.asked.Load(); last > 0 && time.Since(c.begun)-time.Duration(last) < glance {
		return nil
	}
	return c.Check()
}

// Lost is closed when Check has found that the histories are gone.
func (c *Claim) Lost() <-chan struct{} { return c.gone }

// Keep makes the lock file again if somebody has removed it. It reports whether it did.
func (c *Claim) Keep() (again bool, err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file != nil && types.CodeOf(c.file.Check()) != types.ErrConflict {
		return false, nil
	}
	file, err := c.fs.Lock(filepath.Join(c.dir, lockFile))
	if c.file == nil {
		if err == nil {
			c.file = file
		}
		return false, nil
	}
	if err != nil {
		return false, err
	}
	old := c.file
	c.file = file
	return true, old.Close()
}

// Close gives the right back.
func (c *Claim) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.file == nil {
		return c.hold.Close()
	}
	return errors.Join(c.file.Close(), c.hold.Close())
}
