package lifecycle

import (
	"context"

	"rnix/internal/launch"
	"rnix/internal/service"
	"rnix/kernel"
	"rnix/types"
)

// waiter waits for the ends of processes.
type waiter interface {
	WaitInfo(ctx context.Context, pid types.PID) (kernel.Info, error)
}

// present returns where a process lies once it does not leave the kernel any more: one that ends or is being suspended at this moment is waited for.
func (n *Names) present(ctx context.Context, k waiter, t service.Target) service.Target {
	ctx, cancel := context.WithTimeout(ctx, launch.LeaveTime)
	defer cancel()
	for t.Live != nil && (t.Live.Leaving || t.Live.State == types.StateZombie) {
		if _, err := k.WaitInfo(ctx, t.PID); err != nil && types.CodeOf(err) != types.ErrNotFound {
			break
		}
		now, ok := n.ByUUID(t.UUID)
		if !ok {
			break
		}
		t = now
	}
	return t
}
