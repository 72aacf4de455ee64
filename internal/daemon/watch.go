package daemon

import (
	"context"

	"rnix/internal/gc"
	"rnix/internal/service"
	"rnix/internal/service/watch"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// startWatch gives the service that shows the table of processes and their events what it needs of the others.
func startWatch(d *Daemon) {
	d.looks = &looks{groups: &d.groups.Names, platforms: d.platforms, procs: d.procs}
	w := d.watch
	w.Kernel, w.Index, w.Archive, w.Looks, w.Callers = d.kernel, d.journal.Index(), archive{d.collector}, d.looks, watchers{d}
	w.Files, w.Log, w.Started = d.written, d.events, d.started
}

// archive knows the histories that are archived.
type archive struct{ collector *gc.Collector }

func (a archive) Archived() []step.Archived { return a.collector.Archived() }

func (a archive) Find(id types.UUID) (step.Archived, bool) { return gc.ArchiveOf(a.collector, id) }

// watchers knows who watches, and what of whom.
type watchers struct{ daemon *Daemon }

func (c watchers) AgentOf(peer *ipc.Peer) (owner types.PID, inside bool) {
	return c.daemon.access.AgentOf(peer)
}

func (c watchers) Alive(op, text string) (types.PID, error) { return c.daemon.access.Alive(op, text) }

func (c watchers) InSubtree(root, pid types.PID) bool { return c.daemon.access.InSubtree(root, pid) }

func (c watchers) Settled(ctx context.Context) { c.daemon.access.SettledSoon(ctx) }

func (c watchers) Await(ctx context.Context, peer *ipc.Peer, op, text string) (watch.Found, error) {
	if err := c.daemon.access.Settled(ctx); err != nil {
		return watch.Found{}, err
	}
	t, err := c.daemon.access.Find(peer, op, text)
	if err == nil {
		t, err = c.daemon.lifecycle.Await(ctx, t)
	}
	return found(t), err
}

func (c watchers) Find(peer *ipc.Peer, op, text string) (watch.Found, error) {
	t, err := c.daemon.access.Find(peer, op, text)
	return found(t), err
}

func found(t service.Target) watch.Found {
	return watch.Found{UUID: t.UUID, PID: t.PID, Live: t.Live != nil && t.Live.State < types.StateZombie}
}
