// Package instance keeps one daemon, and not more, at a data directory: its lock, which outlives it until its warden has ended what it has left,
// and its socket, which is made again when somebody removes it.
package instance

import (
	"context"
	"log/slog"
	"net"
	"rnix/internal/store"
	"rnix/ipc"
	"rnix/runtime/statehome"
	"rnix/types"
	"time"
)

// How the lock is waited for while the warden of a daemon that has ended holds it: for what one needs that has many to end, and longer
// than it waits for who does not end.
const (
	wardenPatience = 30 * time.Second
	wardenPoll     = 10 * time.Millisecond
)

// TakeLock takes the lock of the data directory. It waits for the warden of a daemon that has ended: until that is done, something may live
// that would be taken for a person's. It fails with CONFLICT if a daemon runs, or if that warden does not come to an end.
func TakeLock(ctx context.Context, places *statehome.Places) (*ipc.Lock, error) {
	path := ipc.DataLock(places.DataDir)
	late := time.NewTimer(wardenPatience)
	defer late.Stop()
	tick := time.NewTicker(wardenPoll)
	defer tick.Stop()
	for {
		lock, err := ipc.TakeLock(path, places.Socket)
		if types.CodeOf(err) != types.ErrConflict {
			return lock, err
		}
		holder, held, herr := ipc.LockHolder(path)
		if herr != nil || held && !holder.Ended() {
			return nil, err
		}
		if held {
			holder.WakeWarden()
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return nil, types.Errorf(types.ErrCancelled, "Lock", path, "%w", context.Cause(ctx))
		case <-late.C:
			return nil, types.Errorf(types.ErrConflict, "Lock", path, "the daemon with pid %d has ended, but its warden, pid %d, which ends what its commands have left, has not; its log says why: %s",
				holder.PID, holder.Warden, places.Log)
		}
	}
}

// claimLook is how often the daemon looks whether the data directory is still the one that it has locked.
const claimLook = time.Second

// WatchClaim looks whether the data directory is still where it was; if it is not, Claim.Lost tells of it. Lock files that somebody has
// removed are made again: by them clients find the daemon.
func WatchClaim(ctx context.Context, claim store.Claim, lock *ipc.Lock, log *slog.Logger) {
	tick := time.NewTicker(claimLook)
	defer tick.Stop()
	for claim.Check() == nil {
		for _, keep := range []func() (bool, error){lock.Keep, claim.Keep} {
			if again, err := keep(); again || err != nil {
				log.Warn("a lock file was removed or replaced", "made_again", again, "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// socketLook is how often the daemon looks whether its socket is still where clients look for it.
const socketLook = time.Second

// WatchSocket takes the place of the daemon's socket back when that was removed or replaced, and says so: who replaces it is asked in its
// stead, and whoever removes it leaves agents that nobody can reach.
func WatchSocket(ctx context.Context, l net.Listener, socket string, serve func(net.Listener), log *slog.Logger) {
	tick := time.NewTicker(socketLook)
	defer tick.Stop()
	failed := ""
	for {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
		again, err := ipc.Relisten(l)
		switch {
		case err != nil && err.Error() != failed:
			failed = err.Error()
			log.Error("the socket was removed or replaced, and cannot be made again", "socket", socket, "err", err)
		case again != nil:
			failed = ""
			log.Warn("the socket was removed or replaced; the daemon has made it again", "socket", socket)
			serve(again)
		}
	}
}
