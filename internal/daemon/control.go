package daemon

import (
	"context"

	"rnix/internal/config"
	"rnix/internal/proc"
	"rnix/internal/service/control"
	"rnix/internal/service/notify"
	"rnix/ipc"
	"rnix/xsync"
)

// startControl gives the service that answers for the daemon itself, and the one that tells a person of what happens, what they need of the others.
func startControl(d *Daemon) {
	d.notices = &notify.Service{Events: d.events, Index: d.journal.Index(), Callers: d.access, Config: func() *config.Notify { return &d.profiles.Own().Notify }, Start: d.procs, Home: d.home, Lookup: config.Lookup(d.opt.Lookup), Secrets: d.secrets, Log: d.log}
	d.control = &control.Service{Version: d.opt.Version, Daemon: self{d}, Kernel: d.kernel, Index: d.journal.Index(), Callers: d.access}
}

// self is the daemon as a whole.
type self struct{ daemon *Daemon }

func (s self) Broken(ctx context.Context) error {
	if s.daemon.bootstrap.Failed() == nil {
		return nil
	}
	return s.daemon.bootstrap.Wait(ctx)
}

func (s self) Outdated() bool { return s.daemon.profiles.Outdated() }

func (s self) Stopping() bool { return s.daemon.stopping.Load() }

func (s self) Stop(by string, asked *ipc.Peer) {
	d := s.daemon
	d.log.Info("asked to stop", "by", asked.PID, "what", by)
	d.stopper.is(by)
	d.stopping.Store(true)
	d.stop()
}

// Status is what the parts of the daemon say of themselves.
func (s self) Status(ctx context.Context) ipc.Status {
	d := s.daemon
	out := ipc.Status{
		Started: d.started, Socket: d.places.Socket, DataDir: d.places.DataDir, Log: d.places.Log,
		Children: len(d.procs.All()), Freezer: string(proc.FreezerHere()), Cgroup: proc.CgroupOf(d.procs), Bounds: ipc.Bounding(proc.EnforcedBy(d.procs)), Recovered: d.notes.all(), Recovering: !xsync.Closed(d.looked), Misread: d.misread,
		Init: d.bootstrap.All(), Starting: d.bootstrap.Starting(), Room: d.room.Why(), Storage: d.storage.Status(ctx),
	}
	out.CheckpointFailures, out.CheckpointFailure = d.store.CheckpointFailures()
	return out
}
