package daemon

import (
	"cmp"
	"context"
	"slices"

	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// family lets a process and all below it go on that stand still, wherever they lie. Those that lie on disk are there before any of them begins: so
// each finds those for which it waits, and those that it waits for find their parent. The pauses of those above end last.
func (d resumer) family(ctx context.Context, t target, req *ipc.ResumeRequest) (ipc.ResumeResponse, error) {
	var resp ipc.ResumeResponse
	var err error
	hold := make(chan struct{})
	defer close(hold)
	var above types.PID
	var reached []types.PID // by the kernel, as those below a process that runs
	switch t.Place() {
	case service.Over:
		return resp, t.MustRun("Resume", req.Target)
	case service.Runs:
		resp = liveResponse(&t, d.events.Last())
		if reached, err = d.kernel.Subtree(t.PID); err != nil {
			return resp, err
		}
		above = t.Live.PPID
	case service.Stored:
		a, err := reviver(d).open(ctx, t.UUID)
		if now, ok := d.names.ByUUID(t.UUID); ok && types.CodeOf(err) == types.ErrConflict && now.Place() == service.Runs { // somebody was quicker with the head
			return d.family(ctx, now, req)
		}
		if err != nil {
			return resp, err
		}
		next, err := reviver(d).settle(a, req)
		if err != nil {
			a.close()
			return resp, err
		}
		var woken []types.PID
		woken, _, above = d.wakeAbove(ctx, a.was.ParentUUID, req, hold, true)
		next.retry = func(again *again) (*ready, error) {
			w, _, up := d.wakeAbove(ctx, a.was.ParentUUID, req, hold, true)
			woken, above = append(woken, w...), cmp.Or(up, above)
			return reviver(d).settle(again, req)
		}
		if resp, err = (reviver(d)).launch(ctx, next, hold); err != nil {
			return resp, err
		}
		resp.Woken = woken
	}
	moved, refused := 0, error(nil)
	for _, m := range d.names.Family(t)[1:] {
		if m.Place() == service.Runs {
			if m.Live.Paused && !slices.Contains(reached, m.PID) && d.kernel.Signal(m.PID, types.SIGRESUME) == nil {
				resp.Woken = append(resp.Woken, m.PID)
			}
			continue
		}
		r, err := d.member(ctx, m.UUID, req, hold)
		switch types.CodeOf(err) {
		case "":
			moved++
			resp.Woken = append(resp.Woken, r.PID)
		case types.ErrConflict: // somebody was quicker
		default:
			if ctx.Err() != nil {
				return resp, err
			}
			refused = err
			resp.Still = append(resp.Still, ipc.StillProc{PID: m.PID, UUID: m.UUID, Why: err.Error()})
		}
	}
	if t.Kind() != "" && t.Place() == service.Stored && moved == 0 && refused != nil { // it does nothing but to wait for them
		return resp, refused
	}
	if resp.Affected, err = d.kernel.SignalTree(resp.PID, types.SIGRESUME); err != nil { // below one that is paused, all that are launched are too
		return resp, err
	}
	resp.Woken = append(resp.Woken, d.thawAbove(above, 0)...)
	return resp, nil
}

// member resumes one history of a family, as it is. CONFLICT: it has ended meanwhile, or somebody was quicker.
func (d resumer) member(ctx context.Context, id types.UUID, req *ipc.ResumeRequest, hold chan struct{}) (ipc.ResumeResponse, error) {
	a, err := reviver(d).unended(ctx, id)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	return reviver(d).start(ctx, a, onlyOn(req), hold)
}

// unended opens a history that is resumed with others. One that was ended since it was listed is CONFLICT: nobody has asked for it to begin again.
func (d reviver) unended(ctx context.Context, id types.UUID) (*again, error) {
	a, err := d.open(ctx, id)
	if err == nil && a.state.Phase == recovery.Ended {
		a.close()
		return nil, types.Errorf(types.ErrConflict, "Resume", id.String(), "it was ended meanwhile")
	}
	return a, err
}

// thawAbove ends the pauses of a process and of those above it, up to top, and returns which of them were paused.
func (d resumer) thawAbove(pid, top types.PID) (woken []types.PID) {
	for pid != 0 && pid != top && len(woken) < service.MaxAncestors {
		i, err := d.kernel.Info(pid)
		if err != nil {
			break
		}
		if i.Paused && d.kernel.Signal(pid, types.SIGRESUME) == nil {
			woken = append(woken, pid)
		}
		pid = i.PPID
	}
	return woken
}
