package daemon

import (
	"context"

	"rnix/internal/proc"
	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// outside is what becomes of the kernel's processes outside of it.
type outside struct {
	kernel.Accounts
	daemon *Daemon
}

// NextPID returns a PID that no process has had.
func (o outside) NextPID() (types.PID, error) {
	if err := o.daemon.journal.Claim().Check(); err != nil { // it would be counted elsewhere
		return 0, err
	}
	n, err := o.daemon.pids.Next()
	return types.PID(n), err
}

// Freeze leaves MCP servers alone: one has nothing to do while nobody calls it. A model call is cut off by a pause.
func (o outside) Freeze(p types.PID) { o.daemon.procs.Freeze(p, proc.KindShell, proc.KindHarness) }

func (o outside) Thaw(p types.PID)           { o.daemon.procs.Thaw(p) }
func (o outside) OSChildren(p types.PID) int { return len(o.daemon.procs.Children(p)) }

// Release ends what an ending process has outside of the kernel.
func (o outside) Release(p types.PID) {
	d := o.daemon
	if i, err := d.kernel.Info(p); err == nil {
		d.models.CloseSession(i.UUID)
		d.snapshots.Forget(i.UUID)
	}
	d.procs.KillOwner(p)
	d.seen.Drop(p)
}

func (o outside) Waits(p *kernel.Process) (reason string, changed <-chan struct{}) {
	if reason, changed := o.daemon.room.Waits(); changed != nil {
		return reason, changed
	}
	return o.daemon.platforms.Waits(p.PID, p.UUID)
}

func (o outside) Touched(id types.UUID) { o.daemon.watch.Touch(id) }

func (o outside) Stored(id types.UUID) (*step.ProcInfo, error) { return ground{o.daemon}.Described(id) }

func (o outside) Revive(ctx context.Context, parent *kernel.Process, id types.UUID) (types.PID, error) {
	return o.daemon.lifecycle.Resumer.ReviveChild(ctx, parent, id)
}
func (o outside) Dismiss(ctx context.Context, id types.UUID, reason string) error {
	return o.daemon.stored.Dismiss(ctx, id, reason)
}
func (o outside) Post(ctx context.Context, id types.UUID, m step.Mail) (uint64, error) {
	return o.daemon.mail.Post(ctx, id, m)
}
