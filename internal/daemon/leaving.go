package daemon

import (
	"context"
	"errors"
	"slices"
	"time"

	"rnix/internal/records"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// leaveTime is how long a command waits for a process that ends or is being suspended at that moment.
const leaveTime = 5 * time.Second

// present returns where a process lies once it does not leave the kernel any more: one that ends or is being suspended at this moment is waited for.
func present(ctx context.Context, d *Daemon, t target) target {
	ctx, cancel := context.WithTimeout(ctx, leaveTime)
	defer cancel()
	for t.Live != nil && (t.Live.Leaving || t.Live.State == types.StateZombie) {
		if _, err := d.kernel.WaitInfo(ctx, t.PID); err != nil && types.CodeOf(err) != types.ErrNotFound {
			break
		}
		now, ok := d.names.ByUUID(t.UUID)
		if !ok {
			break
		}
		t = now
	}
	return t
}

// stays returns the PID of a history that runs and takes children. One that is leaving is waited for.
func stays(ctx context.Context, d *Daemon, id types.UUID) (types.PID, bool) {
	if _, ok := d.running(id); !ok {
		return 0, false
	}
	t, ok := d.names.ByUUID(id)
	if !ok {
		return 0, false
	}
	t = present(ctx, d, t)
	return t.PID, t.Live != nil
}

// opened is store.open, but CONFLICT for a history of which the last run has given the record back and has not left the kernel yet: a run that
// began now would be refused when its record says already that it has begun.
func (d reviver) opened(ctx context.Context, id types.UUID) (rec *records.Recorder, state *recovery.State, used bool, damage string, err error) {
	rec, state, used, damage, err = d.store.Open(ctx, id)
	if _, leaves := d.running(id); err == nil && leaves {
		err = errors.Join(types.Errorf(types.ErrConflict, "Resume", id.String(), "its last run is not over yet"), rec.Close())
	}
	return rec, state, used, damage, err
}

// passing does what concerns a process that may leave meanwhile, again until it does not: it has ended then, or is suspended.
func (d resumer) passing(ctx context.Context, t target, do func(t target) (ipc.ResumeResponse, error)) (ipc.ResumeResponse, error) {
	var woken []types.PID
	for began := time.Now(); ; {
		t = present(ctx, d.Daemon, t)
		r, err := do(t)
		if r.Woken = slices.Concat(woken, r.Woken); !kernel.Passing(err) || time.Since(began) > leaveTime || ctx.Err() != nil {
			return r, err
		}
		woken = r.Woken
		if now, ok := d.names.ByUUID(t.UUID); ok {
			t = now
		}
	}
}

// launch starts the process of a history, below its parent if that is alive. Its lease is given back if that fails. One whose parent leaves before
// it is there is started again without it, or below its next run.
func (d reviver) launch(ctx context.Context, r *ready, hold <-chan struct{}) (ipc.ResumeResponse, error) {
	paused := r.state.Paused
	for began := time.Now(); ; {
		id, from := r.rec.ID, r.state.Seq
		resp, err := d.launchOnce(ctx, r, hold)
		if r.leave != nil {
			r.leave()
		}
		if !kernel.Passing(err) || time.Since(began) > leaveTime || ctx.Err() != nil {
			return resp, err
		}
		a, oerr := d.open(ctx, id)
		if oerr != nil {
			return resp, oerr
		}
		if a.state.Phase == recovery.Ended && a.state.Seq > from || a.state.Paused && !paused { // a person was quicker
			a.close()
			return resp, types.Errorf(types.ErrConflict, "Resume", id.String(), "it was ended or paused meanwhile")
		}
		if r, err = r.retry(a); err != nil {
			a.close()
			return resp, err
		}
	}
}

// afterSignal does to a process that left before a signal to it counted what the signal does where it is then.
func (d signaller) afterSignal(ctx context.Context, op string, id types.UUID, req ipc.SignalRequest) error {
	t, ok := d.names.ByUUID(id)
	if !ok || t.Live != nil && !t.Live.Decided {
		return nil
	}
	t = present(ctx, d.Daemon, t)
	if t.Live != nil && t.Live.Decided || t.Place() == service.Over {
		return nil
	}
	return d.toMember(ctx, op, &t, req)
}

// insist sends a signal to a member of a family. One that is resumed or written to at this moment gets it when that is done.
func (d signaller) insist(ctx context.Context, op string, m target, req ipc.SignalRequest, late time.Time) error {
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
		now, ok := d.names.ByUUID(m.UUID)
		if !ok || now.Place() == service.Over {
			return nil
		}
		m = now
	}
}
