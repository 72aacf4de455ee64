package daemon

import (
	"context"

	"rnix/internal/gc"
	"rnix/internal/service/watch"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// startWatch gives the service that shows the table of processes and their events what it needs of the others.
func startWatch(d *Daemon) {
	d.looks = &looks{groups: &d.groups.Names, platforms: d.platforms, procs: d.procs}
	w := d.watch
	w.Kernel, w.Index, w.Archive, w.Looks, w.Callers = d.kernel, d.journal.Index(), archive{d.collector}, d.looks, callers{d}
	w.Files, w.Log, w.Started = d.written, d.events, d.started
}

// archive knows the histories that are archived.
type archive struct{ collector *gc.Collector }

func (a archive) Archived() []step.Archived { return a.collector.Archived() }

func (a archive) Find(id types.UUID) (step.Archived, bool) { return gc.ArchiveOf(a.collector, id) }

// callers knows who asks, and what of whom.
type callers struct{ daemon *Daemon }

func (c callers) AgentOf(peer *ipc.Peer) (owner types.PID, inside bool) {
	return c.daemon.agentOf(peer)
}

func (c callers) Alive(op, text string) (types.PID, error) {
	t, err := processes{c.daemon}.alive(op, text)
	return t.PID, err
}

func (c callers) InSubtree(root, pid types.PID) bool { return c.daemon.inSubtree(root, pid) }

func (c callers) Settled(ctx context.Context) { settledSoon(ctx, c.daemon) }

func (c callers) Await(ctx context.Context, peer *ipc.Peer, op, text string) (watch.Found, error) {
	if err := c.daemon.settled(ctx); err != nil {
		return watch.Found{}, err
	}
	t, err := processes{c.daemon}.find(peer, op, text)
	if err == nil {
		t, err = resumedLater(ctx, processes{c.daemon}, t)
	}
	return found(t), err
}

func (c callers) Find(peer *ipc.Peer, op, text string) (watch.Found, error) {
	t, err := processes{c.daemon}.find(peer, op, text)
	return found(t), err
}

func found(t target) watch.Found {
	return watch.Found{UUID: t.UUID, PID: t.PID, Live: t.Live != nil && t.Live.State < types.StateZombie}
}
