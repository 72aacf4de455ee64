package daemon

import (
	"context"

	"rnix/internal/service"
	"rnix/internal/service/histories"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// startHistories gives the service that shows what processes have done what it needs of the others.
func startHistories(d *Daemon) {
	d.histories = &histories.Service{Journal: d.journal, Index: d.journal.Index(), Kernel: d.kernel, Archive: d.collector, Finder: finder{d}, Log: d.log}
}

// finder finds what a caller names.
type finder struct{ daemon *Daemon }

func (f finder) Find(peer *ipc.Peer, op, text string) (service.Target, error) {
	return processes{f.daemon}.find(peer, op, text)
}

func (f finder) Settled(ctx context.Context) error { return f.daemon.settled(ctx) }

func (f finder) AgentOf(peer *ipc.Peer) (owner types.PID, inside bool) { return f.daemon.agentOf(peer) }

func (f finder) MayTouch(peer *ipc.Peer, op string, pid types.PID) error {
	return f.daemon.mayTouch(peer, op, pid)
}

func (f finder) MaySignal(peer *ipc.Peer, op string, pid types.PID) error {
	return insider{f.daemon}.maySignal(peer, op, pid)
}

func (f finder) Resolve(text string) (service.Target, error) { return f.daemon.names.Resolve(text) }

func (f finder) Below(id types.UUID, top types.PID) bool {
	return descends(f.daemon, target{UUID: id}, top)
}

func (f finder) Family(t service.Target) []service.Target { return f.daemon.names.Family(t) }

func (f finder) Lost(t *service.Target, text string, err error) error {
	return f.daemon.storage.Lost(t, text, err)
}

func (f finder) Whole(i *step.ProcInfo) *step.ProcInfo { return processes{f.daemon}.whole(i) }

func (f finder) Here(path string) string { return here(f.daemon, path) }

func (f finder) Hold(id types.UUID) (release func(), err error) { return f.daemon.storage.Hold(id) }
