package daemon

import (
	"context"
	"errors"

	"rnix/internal/service"
	"rnix/internal/service/lifecycle"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// newLifecycle is the service that changes how processes are called.
func newLifecycle(d *Daemon) *lifecycle.Service {
	return &lifecycle.Service{Names: d.names, Finder: finder{d}, Kernel: d.kernel, Stored: labels{d}}
}

func (f finder) MayChange(peer *ipc.Peer, op string, t service.Target) error {
	owner, inside := f.daemon.agentOf(peer)
	if !inside || descends(f.daemon, t, owner) {
		return nil
	}
	e := service.Outside(op, owner, "act on its own subtree only")
	e.PID = t.PID
	return e
}

// labels name histories that do not run.
type labels struct{ daemon *Daemon }

// Rename writes the name into the record of a history, and then where lists find it.
func (l labels) Rename(ctx context.Context, t *target, name string) (was string, err error) {
	d := l.daemon
	leave, err := d.storage.Hold(t.UUID)
	if err != nil {
		return "", err
	}
	defer leave()
	rec, state, _, _, err := d.store.Open(ctx, t.UUID)
	if err != nil {
		return "", err
	}
	defer func() { err = errors.Join(err, rec.Close()) }()
	old, err := wasOf(d, state, t.UUID)
	if err != nil || old.Name == name {
		return old.Name, err
	}
	info, known := d.journal.Index().Get(t.UUID)
	if known {
		info = *processes{d}.whole(&info)
	}
	if over := info; known && info.Over() { // after a crash nobody looks at the records of what is over
		over.State = types.StateZombie
		d.put(&over)
	}
	if err := rec.Add(step.Record{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerName, Text: name}}); err != nil {
		return "", err
	}
	if err := rec.Commit(); err != nil {
		return "", err
	}
	if !d.kernel.Renamed(t.PID, t.UUID, name) && known {
		info.Name = d.store.Secrets.String(name)
		d.put(&info)
	}
	return old.Name, nil
}

// calledNow is what was read of a history before, with the name that it has now.
func (d autoResumer) calledNow(info step.ProcInfo) step.ProcInfo {
	if now, ok := d.journal.Index().Get(info.UUID); ok {
		info.Name = now.Name
	}
	return info
}
