package daemon

import (
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// target is a process that somebody named, wherever it lies.
type target = service.Target

// find finds the process that a caller names, to read what it did and said. A caller inside an agent sees the
// agent's own subtree only.
func (d processes) find(peer *ipc.Peer, op, text string) (target, error) {
	t, err := d.names.Resolve(text)
	if err != nil {
		return t, err
	}
	if owner, inside := d.agentOf(peer); inside && !descends(d.Daemon, t, owner) {
		e := service.Outside(op, owner, "see the records of its own subtree only")
		e.PID = t.PID
		return target{}, e
	}
	return t, nil
}

// descends reports whether a process, alive or on disk, is another one or was started below it.
func descends(d *Daemon, t target, root types.PID) bool {
	top, err := d.kernel.Info(root)
	return err == nil && d.kernel.Descends(t.UUID, top.UUID)
}
