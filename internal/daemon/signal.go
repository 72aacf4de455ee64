package daemon

import (
	"context"
	"time"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// goingOn is how long a signal waits for a process that is just going on from its history.
const goingOn = 5 * time.Second

func (d processes) signal(ctx context.Context, peer *ipc.Peer, req ipc.SignalRequest) (ipc.SignalResponse, error) {
	return signaller{d}.send(ctx, peer, "Signal", req, false)
}

func (d processes) signalTree(ctx context.Context, peer *ipc.Peer, req ipc.SignalRequest) (ipc.SignalResponse, error) {
	return signaller{d}.send(ctx, peer, "SignalTree", req, true)
}

// signaller sends signals to processes, alive or suspended on disk.
type signaller struct{ processes }

// send sends a signal to a process, with tree also to all below it. One that is suspended on disk is ended there, or
// paused; one that goes on in this moment gets the signal when it has.
func (d signaller) send(ctx context.Context, peer *ipc.Peer, op string, req ipc.SignalRequest, tree bool) (ipc.SignalResponse, error) {
	for began := time.Now(); ; {
		t, err := d.resolve(req.Target)
		if err == nil && (t.live == nil || t.live.State >= types.StateZombie) && t.info != nil && t.info.Exit == nil {
			if err = d.settled(ctx); err == nil { // what an earlier daemon has left is about to go on, or is not
				t, err = d.resolve(req.Target)
			}
		}
		if err != nil {
			return ipc.SignalResponse{}, err
		}
		r, err := d.toOne(ctx, peer, op, &t, req, tree)
		if types.CodeOf(err) != types.ErrConflict || time.Since(began) > goingOn {
			return r, err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return r, err
		}
	}
}

// toOne sends a signal to what a name means now. CONFLICT: it goes on in this moment, or somebody else is at its history.
func (d signaller) toOne(ctx context.Context, peer *ipc.Peer, op string, t *target, req ipc.SignalRequest, tree bool) (ipc.SignalResponse, error) {
	refusal := mustLive(op, req.Target, t)
	if refusal != nil && (t.live != nil || !t.info.Suspended) {
		return ipc.SignalResponse{}, refusal
	}
	if owner, inside := d.agentOf(peer); inside && refusal != nil {
		if !(inspector{d.Daemon}).descends(*t, owner) {
			return ipc.SignalResponse{}, outside(op, owner, "act on its own subtree only")
		}
		if err := d.kernel.MaySignal(owner); err != nil {
			return ipc.SignalResponse{}, err
		}
	} else if err := (insider{d.Daemon}).maySignal(peer, op, t.pid); err != nil {
		return ipc.SignalResponse{}, err
	}
	r := ipc.SignalResponse{PID: t.pid, UUID: t.uuid, Affected: 1}
	var err error
	switch {
	case refusal != nil:
		r.Stored = true
		r.Affected, err = d.onDisk(ctx, t, req.Signal, tree, refusal)
	case tree:
		r.Affected, err = d.kernel.SignalTree(t.pid, req.Signal)
	default:
		err = d.kernel.Signal(t.pid, req.Signal)
	}
	if err != nil {
		return ipc.SignalResponse{}, err
	}
	return r, nil
}

// onDisk does to a suspended history what a signal would do to its process, and with tree to those below it that are suspended
// or alive. It returns how many there were, or refusal where nothing can be done to it.
func (d signaller) onDisk(ctx context.Context, t *target, sig types.Signal, tree bool, refusal error) (n int, err error) {
	paused := t.info.SuspendReason == reasonPaused
	if sig == types.SIGPAUSE && (paused || t.info.Exit == nil || !t.info.WakeAt.IsZero()) { // else it stands still anyway, until a person comes
		return 1, runHolder{composer{d.Daemon}}.holdOne(ctx, t.uuid)
	}
	exit, ends := kernel.ExitBySignal(sig, paused)
	if !ends {
		return 0, refusal
	}
	if up, ok := d.kernel.ByUUID(t.info.ParentUUID); ok { // it is told of ends in the kernel, and waits for this one to go on
		if i, err := d.kernel.Info(up.PID); err == nil && i.Kind != "" {
			return 0, types.Errorf(types.ErrInvalid, "Signal", t.uuid.String(), "it is suspended, and PID %d (%s), which runs, waits for it: resume it first, or end that one", i.PID, i.Kind)
		}
	}
	tree = tree || t.info.Kind != "" // what has no model takes what it has started with it
	if n, err = d.end(ctx, t.info, exit, tree); err != nil || !tree {
		return n, err
	}
	for _, i := range d.kernel.List() {
		if i.State < types.StateZombie && d.kernel.Descends(i.UUID, t.uuid) && d.kernel.Signal(i.PID, sig) == nil {
			n++
		}
	}
	return n, nil
}

// end ends a suspended history and, with tree, the suspended ones below it: those first that are above, so that nobody
// wakes another one.
func (d signaller) end(ctx context.Context, info *step.ProcInfo, exit types.ExitStatus, tree bool) (int, error) {
	if err := (undertaker{d.Daemon}).endOnDisk(ctx, info, exit); err != nil {
		return 0, err
	}
	n := 1
	if !tree {
		return n, nil
	}
	for _, below := range d.journal.Index().Open() {
		_, alive := d.running(below.UUID)
		if alive || !below.Suspended || !d.kernel.Descends(below.UUID, info.UUID) || below.UUID == info.UUID {
			continue
		}
		switch err := (undertaker{d.Daemon}).endOnDisk(ctx, &below, exit); types.CodeOf(err) {
		case types.ErrConflict: // it goes on in this moment, and gets the signal then
		case "":
			n++
		default:
			return n, err
		}
	}
	return n, nil
}
