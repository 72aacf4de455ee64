package lifecycle

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"rnix/internal/launch"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// goingOn is how long a signal waits for a process that is just going on from its history.
const goingOn = 5 * time.Second

// signaller sends signals to processes, alive or suspended on disk.
type signaller struct {
	Names  *Names
	Access *Access
	Stored *launch.Stored
	Log    *slog.Logger
	Kernel signalKernel
	Ground Settled
}

// signalKernel is what of the kernel is asked to send signals.
type signalKernel interface {
	Table
	waiter
	Subtree(pid types.PID) ([]types.PID, error)
	Signal(pid types.PID, sig types.Signal) error
	SignalTree(pid types.PID, sig types.Signal) (int, error)
	MaySignal(pid types.PID) error
}

// send sends a signal to a process, with tree also to all below it. One that is suspended on disk is ended there, or
// paused; one that goes on in this moment gets the signal when it has.
func (d *signaller) send(ctx context.Context, peer *ipc.Peer, op string, req ipc.SignalRequest, tree bool) (ipc.SignalResponse, error) {
	for began := time.Now(); ; {
		t, err := d.Names.Resolve(req.Target)
		if err == nil && t.Place() == service.Stored && t.Info.Exit == nil {
			if err = d.Ground.Settled(ctx); err == nil { // what an earlier daemon has left is about to go on, or is not
				t, err = d.Names.Resolve(req.Target)
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
func (d *signaller) toOne(ctx context.Context, peer *ipc.Peer, op string, t *service.Target, req ipc.SignalRequest, tree bool) (ipc.SignalResponse, error) {
	place := t.Place()
	if place == service.Over {
		return ipc.SignalResponse{}, t.MustRun(op, req.Target)
	}
	if owner, inside := d.Access.AgentOf(peer); inside && place == service.Stored {
		if !d.Access.Below(t.UUID, owner) {
			return ipc.SignalResponse{}, service.Outside(op, owner, "act on its own subtree only")
		}
		if err := d.Kernel.MaySignal(owner); err != nil {
			return ipc.SignalResponse{}, err
		}
	} else if err := d.Access.MaySignal(peer, op, t.PID); err != nil {
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
	if !r.Stored {
		r.Blocked, r.Handled = d.outlives(t.PID, req.Signal)
	}
	if req.Signal == types.SIGPAUSE && !tree {
		r.Working = d.Names.Apart(*t, false)
	}
	return r, nil
}

// outlives reports whether a process goes on after a signal that ends others, since its agent blocks it or is told of it.
func (d *signaller) outlives(pid types.PID, sig types.Signal) (blocked, handled bool) {
	i, err := d.Kernel.Info(pid)
	if err != nil || i.State >= types.StateZombie || i.Decided || i.Ending != 0 {
		return false, false
	}
	blocked = slices.Contains(i.Pending, sig)
	return blocked, !blocked && sig == types.SIGINT && i.OnInterrupt != ""
}

// toFamily sends a signal to a process and to all below it, wherever they lie: those first that are above, so that nobody
// wakes another one. It returns how many got it.
func (d *signaller) toFamily(ctx context.Context, op string, t *service.Target, req ipc.SignalRequest) (n int, err error) {
	var held error
	var reached []types.PID // by the kernel, all at once: none is born meanwhile that does not get it
	if t.Place() == service.Runs {
		if reached, err = d.Kernel.Subtree(t.PID); err == nil {
			if n, err = d.Kernel.SignalTree(t.PID, req.Signal); types.CodeOf(err) == types.ErrStorage { // it is done, and would not hold over the end of the daemon
				held, err = err, nil
			}
			if err == nil {
				err = d.afterSignal(ctx, op, t.UUID, req)
			}
		}
		if err != nil {
			return n, cmp.Or(held, err)
		}
	} else if held = d.toMember(ctx, op, t, req); held == nil {
		n = 1
	} else if types.CodeOf(held) != types.ErrStorage {
		return 0, held
	}
	late := time.Now().Add(goingOn)
	for _, m := range d.Names.Family(*t)[1:] {
		if m.Place() == service.Runs && !m.Live.Decided && slices.Contains(reached, m.PID) {
			continue
		}
		switch err := d.insist(ctx, op, m, req, late); types.CodeOf(err) {
		case "":
			n++
		case types.ErrConflict, types.ErrStorage: // somebody holds its record, or it would not hold over the end of the daemon: the others get it all the same
			held = cmp.Or(held, err)
		case types.ErrCancelled:
			if ctx.Err() != nil {
				return n, err
			}
			held = cmp.Or(held, err)
		default: // it has ended, or who waits for it ends it
			d.Log.Debug("signal", "uuid", m.UUID, "err", err)
		}
	}
	return n, held
}

// toMember sends a signal to one process: where it runs by the kernel, and on disk by what the signal would do.
func (d *signaller) toMember(ctx context.Context, op string, t *service.Target, req ipc.SignalRequest) error {
	if t.Place() == service.Runs {
		if err := d.Kernel.Signal(t.PID, req.Signal); err != nil {
			return err
		}
		return d.afterSignal(ctx, op, t.UUID, req)
	}
	if req.Signal == types.SIGPAUSE {
		return d.Stored.Pause(ctx, t.UUID)
	}
	exit, ends := kernel.ExitBySignal(req.Signal, t.Paused())
	if !ends {
		return t.MustRun(op, req.Target)
	}
	if up, ok := d.Kernel.ByUUID(t.Info.ParentUUID); ok { // it is told of ends in the kernel, and waits for this one to go on
		if i, err := d.Kernel.Info(up.PID); err == nil && i.Kind != "" {
			return types.Errorf(types.ErrInvalid, "Signal", t.UUID.String(), "it is suspended, and PID %d (%s), which runs, waits for it: resume it first, or end that one", i.PID, i.Kind)
		}
	}
	return d.Stored.End(ctx, t.Info, exit)
}

// afterSignal does to a process that left before a signal to it counted what the signal does where it is then.
func (d *signaller) afterSignal(ctx context.Context, op string, id types.UUID, req ipc.SignalRequest) error {
	t, ok := d.Names.ByUUID(id)
	if !ok || t.Live != nil && !t.Live.Decided {
		return nil
	}
	t = d.Names.present(ctx, d.Kernel, t)
	if t.Live != nil && t.Live.Decided || t.Place() == service.Over {
		return nil
	}
	return d.toMember(ctx, op, &t, req)
}

// insist sends a signal to a member of a family. One that is resumed or written to at this moment gets it when that is done.
func (d *signaller) insist(ctx context.Context, op string, m service.Target, req ipc.SignalRequest, late time.Time) error {
	for {
		err := d.toMember(ctx, op, &m, req)
		if types.CodeOf(err) != types.ErrConflict && !kernel.Passing(err) || time.Now().After(late) {
			return err
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return err
		}
		now, ok := d.Names.ByUUID(m.UUID)
		if !ok || now.Place() == service.Over {
			return nil
		}
		m = now
	}
}
