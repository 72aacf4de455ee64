package daemon

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rnix/internal/service"
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
		t, err := d.names.Resolve(req.Target)
		if err == nil && t.Place() == service.Stored && t.Info.Exit == nil {
			if err = d.settled(ctx); err == nil { // what an earlier daemon has left is about to go on, or is not
				t, err = d.names.Resolve(req.Target)
			}
		}
		if err != nil {
			return ipc.SignalResponse{}, err
		}
		r, err := d.toOne(ctx, peer, op, &t, req, tree)
		if types.CodeOf(err) != types.ErrConflict && !kernel.Passing(err) || time.Since(began) > goingOn {
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
	place := t.Place()
	if place == service.Over {
		return ipc.SignalResponse{}, t.MustRun(op, req.Target)
	}
	if owner, inside := d.agentOf(peer); inside && place == service.Stored {
		if !descends(d.Daemon, *t, owner) {
			return ipc.SignalResponse{}, service.Outside(op, owner, "act on its own subtree only")
		}
		if err := d.kernel.MaySignal(owner); err != nil {
			return ipc.SignalResponse{}, err
		}
	} else if err := (insider{d.Daemon}).maySignal(peer, op, t.PID); err != nil {
		return ipc.SignalResponse{}, err
	}
	r := ipc.SignalResponse{PID: t.PID, UUID: t.UUID, Stored: place == service.Stored}
	var err error
	if tree || r.Stored && t.Kind() != "" { // what has no model takes what it has started with it
		r.Affected, err = d.toFamily(ctx, op, t, req)
	} else {
		r.Affected, err = 1, d.toMember(ctx, op, t, req)
	}
	if err != nil {
		return ipc.SignalResponse{}, err
	}
	if req.Signal == types.SIGPAUSE && !tree {
		r.Working = d.names.Apart(*t, false)
	}
	return r, nil
}

// toFamily sends a signal to a process and to all below it, wherever they lie: those first that are above, so that nobody
// wakes another one. It returns how many got it.
func (d signaller) toFamily(ctx context.Context, op string, t *target, req ipc.SignalRequest) (n int, err error) {
	var reached []types.PID // by the kernel, all at once: none is born meanwhile that does not get it
	if t.Place() == service.Runs {
		if reached, err = d.kernel.Subtree(t.PID); err == nil {
			if n, err = d.kernel.SignalTree(t.PID, req.Signal); err == nil {
				err = d.afterSignal(ctx, op, t.UUID, req)
			}
		}
		if err != nil {
			return n, err
		}
	} else if err = d.toMember(ctx, op, t, req); err != nil {
		return 0, err
	} else {
		n = 1
	}
	late, held := time.Now().Add(goingOn), error(nil)
	for _, m := range d.names.Family(*t)[1:] {
		if m.Place() == service.Runs && !m.Live.Decided && slices.Contains(reached, m.PID) {
			continue
		}
		switch err := d.insist(ctx, op, m, req, late); types.CodeOf(err) {
		case "":
			n++
		case types.ErrConflict: // somebody holds its record: the others get it all the same
			held = cmp.Or(held, err)
		case types.ErrCancelled:
			if ctx.Err() != nil {
				return n, err
			}
			held = cmp.Or(held, err)
		default: // it has ended, or who waits for it ends it
			d.log.Debug("signal", "uuid", m.UUID, "err", err)
		}
	}
	return n, held
}

// toMember sends a signal to one process: where it runs by the kernel, and on disk by what the signal would do.
func (d signaller) toMember(ctx context.Context, op string, t *target, req ipc.SignalRequest) error {
	if t.Place() == service.Runs {
		if err := d.kernel.Signal(t.PID, req.Signal); err != nil {
			return err
		}
		return d.afterSignal(ctx, op, t.UUID, req)
	}
	if req.Signal == types.SIGPAUSE {
		return undertaker{d.Daemon}.pause(ctx, t.UUID)
	}
	exit, ends := kernel.ExitBySignal(req.Signal, t.Paused())
	if !ends {
		return t.MustRun(op, req.Target)
	}
	if up, ok := d.kernel.ByUUID(t.Info.ParentUUID); ok { // it is told of ends in the kernel, and waits for this one to go on
		if i, err := d.kernel.Info(up.PID); err == nil && i.Kind != "" {
			return types.Errorf(types.ErrInvalid, "Signal", t.UUID.String(), "it is suspended, and PID %d (%s), which runs, waits for it: resume it first, or end that one", i.PID, i.Kind)
		}
	}
	return undertaker{d.Daemon}.endOnDisk(ctx, t.Info, exit)
}
