package daemon

import (
	"context"
	"time"

	"rnix/internal/proc"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// How the lock is waited for while the warden of a daemon that has ended holds it: for what one needs that has many to end, and longer
// than it waits for who does not end.
const (
	wardenPatience = 30 * time.Second
	wardenPoll     = 10 * time.Millisecond
)

// takeLock takes the lock of the data directory. It waits for the warden of a daemon that has ended: until that is done, something may live
// that would be taken for a person's. It fails with CONFLICT if a daemon runs, or if that warden does not come to an end.
func takeLock(ctx context.Context, d *Daemon) (*ipc.Lock, error) {
	path := ipc.DataLock(d.places.DataDir)
	late := time.NewTimer(wardenPatience)
	defer late.Stop()
	tick := time.NewTicker(wardenPoll)
	defer tick.Stop()
	for {
		lock, err := ipc.TakeLock(path, d.places.Socket)
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
				holder.PID, holder.Warden, d.places.Log)
		}
	}
}

// guard has the warden end what children leave behind if this program is killed, and hold the lock until it has. A daemon without
// one runs too, and says so in its log.
func guard(d *Daemon, lock *ipc.Lock) error {
	if err := clearStop(d); err != nil {
		return err
	}
	if d.opt.Guard == nil {
		d.log.Warn("there is no warden: if the daemon is killed, what commands have started lives on until the next one starts, and what has hidden itself for longer")
		return nil
	}
	proc.LeaseOf(d.procs, d.platforms.Holder)
	held, err := lock.Share(d.opt.Guard.Warden())
	if err != nil {
		return err
	}
	return d.procs.Guard(d.opt.Guard, d.stop, held)
}

// claimLook is how often the daemon looks whether the data directory is still the one that it has locked.
const claimLook = time.Second

// watchClaim looks whether the data directory is still where it was; if it is not, Claim.Lost tells of it. Lock files that somebody has
// removed are made again: by them clients find the daemon.
func watchClaim(ctx context.Context, d *Daemon, lock *ipc.Lock) {
	tick := time.NewTicker(claimLook)
	defer tick.Stop()
	claim := d.journal.Claim
	for claim.Check() == nil {
		for _, keep := range []func() (bool, error){lock.Keep, claim.Keep} {
			if again, err := keep(); again || err != nil {
				d.log.Warn("a lock file was removed or replaced", "made_again", again, "err", err)
			}
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return
		}
	}
}

// nextPID returns a PID that no process has had.
func nextPID(d *Daemon) (types.PID, error) {
	if err := d.journal.Claim.Check(); err != nil { // it would be counted elsewhere
		return 0, err
	}
	n, err := d.pids.Next()
	return types.PID(n), err
}

// settle gives back the PIDs that were reserved and not used.
func settle(d *Daemon) error {
	if d.journal.Claim.Check() != nil {
		return nil // as after kill -9
	}
	return d.pids.Settle()
}

// unclaim gives a claim back, unless the journal does.
func unclaim(d *Daemon, c *step.Claim) error {
	if d.journal != nil {
		return nil
	}
	return c.Close()
}
