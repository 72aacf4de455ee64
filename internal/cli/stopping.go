package cli

import (
	"context"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// How a daemon that stops is waited for.
const (
	stopPatience = 60 * time.Second
	stopSilence  = 3 * time.Second // then it is said why nothing is
	stopPoll     = 10 * time.Millisecond
)

// awaitStop waits until a daemon that stops has given the lock of its data back, and its warden, too. slow is called once if that takes
// longer than people wait without a word. It fails with TIMEOUT.
func awaitStop(ctx context.Context, data string, pid int, slow func()) error {
	patience := time.NewTimer(stopPatience)
	defer patience.Stop()
	silent := time.NewTimer(stopSilence)
	defer silent.Stop()
	tick := time.NewTicker(stopPoll)
	defer tick.Stop()
	for lock := ipc.DataLock(data); ; {
		holder, held, err := ipc.LockHolder(lock)
		if err != nil {
			return err
		}
		if !held || holder.PID != pid && holder.PID != 0 {
			return nil
		}
		holder.WakeWarden()
		select {
		case <-tick.C:
		case <-silent.C:
			slow()
		case <-ctx.Done():
			return types.Errorf(types.ErrCancelled, "Shutdown", "", "%w", context.Cause(ctx))
		case <-patience.C:
			return types.Errorf(types.ErrTimeout, "Shutdown", "", "the daemon (pid %d) is still there after %s", pid, stopPatience)
		}
	}
}

// outlasts reports whether a daemon stops, which would refuse what is wanted of it, or has ended since we connected, as one does
// that cannot start. Then it has ended when this returns; who asks again is told why, or gets the next one.
func outlasts(ctx context.Context, a *app, c *ipc.Client, data string) (bool, error) {
	p, err := ipc.Call(ctx, c, ipc.Ping, ipc.Empty{})
	a.daemon = p.PID
	if code := types.CodeOf(err); code == types.ErrUnavailable || code == types.ErrDisconnected {
		_ = c.Close()
		return true, nil
	}
	if err != nil || !p.Stopping { // an error shows again in the call for which it is asked
		return false, nil
	}
	_ = c.Close() // nothing is under way on it
	return true, awaitStop(ctx, data, p.PID, func() {
		a.out.talk("[kernel] the daemon (pid %d) is stopping; the next one starts when it has ended", p.PID)
	})
}
