package worktree

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// How often a lock that somebody else has is tried again.
const (
	lockFirst = 2 * time.Millisecond
	lockMost  = 200 * time.Millisecond
)

// lockKey is under what a context has the file of the lock. A git that outlives us, since we were
// killed, still writes in the checkout: it has the file open, and so the lock.
type lockKey struct{}

// lock takes the lock of a session: a file that no other manager and no other process can lock
// meanwhile. It waits as long as ctx lasts. The end of the process, however it ends, gives the lock
// back, once the children have ended too that were started with the context that is returned.
func (l ledger) lock(ctx context.Context, session string) (held context.Context, unlock func(), err error) {
	if err := durable.MkdirAll(l.fs, l.dir); err != nil {
		return nil, nil, err
	}
	path := filepath.Join(l.dir, session+".lock")
	for wait := lockFirst; ; wait = min(2*wait, lockMost) {
		f, err := tryLock(path)
		if err != nil {
			return nil, nil, types.Errorf(types.ErrStorage, "Lock", path, "%w", err)
		}
		if f != nil {
			return context.WithValue(ctx, lockKey{}, f), func() { _ = os.Remove(path); _ = f.Close() }, nil // removed while it is ours: who waits looks again
		}
		t := time.NewTimer(wait)
		select {
		case <-t.C:
		case <-ctx.Done():
			t.Stop()
			return nil, nil, types.Errorf(types.ErrCancelled, "Lock", session, "another owner has the session: %w", context.Cause(ctx))
		}
	}
}

// tryLock returns the locked file, or nil if somebody else has it.
func tryLock(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, durable.FilePerm)
	if err != nil {
		return nil, err
	}
	for {
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
		if err != syscall.EINTR {
			break
		}
	}
	if err == nil {
		mine, err1 := f.Stat()
		named, err2 := os.Stat(path)
		if err1 == nil && err2 == nil && os.SameFile(mine, named) {
			return f, nil
		}
		err = syscall.EWOULDBLOCK // whoever had it has removed the name: a lock on this file keeps nobody out
	}
	f.Close()
	if err == syscall.EWOULDBLOCK {
		return nil, nil
	}
	return nil, err
}
