package lifecycle

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rnix/internal/launch"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// family lets a process and all below it go on that stand still, wherever they lie. Those that lie on disk are there before any of them begins: so
// each finds those for which it waits, and those that it waits for find their parent. The pauses of those above end last. STORAGE, with a PID of a
// process that is there: they go on, and one of them would not over the end of the daemon.
func (d *resumes) family(ctx context.Context, t service.Target, req *ipc.ResumeRequest) (ipc.ResumeResponse, error) {
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
		resp = liveResponse(&t, d.Seq())
		if reached, err = d.Kernel.Subtree(t.PID); err != nil {
			return resp, err
		}
		above = t.Live.PPID
	case service.Stored:
		a, err := d.Stored.Open(ctx, t.UUID)
		if now, ok := d.Names.ByUUID(t.UUID); ok && types.CodeOf(err) == types.ErrConflict && now.Place() == service.Runs { // somebody was quicker with the head
			return d.family(ctx, now, req)
		}
		if err != nil {
			return resp, err
		}
		next, err := d.Launcher.Plan(a, req)
		if err != nil {
			a.Close()
			return resp, err
		}
		var woken []types.PID
		woken, _, above = d.chain.wakeAbove(ctx, a.Was.ParentUUID, req, hold, true)
		next.Retry = func(again *launch.Opened) (*launch.Ready, error) {
			w, _, up := d.chain.wakeAbove(ctx, a.Was.ParentUUID, req, hold, true)
			woken, above = append(woken, w...), cmp.Or(up, above)
			return d.Launcher.Plan(again, req)
		}
		if resp, err = d.Launcher.Launch(ctx, next, hold); err != nil {
			return resp, err
		}
		resp.Woken = woken
	}
	moved, refused, lost := 0, error(nil), error(nil)
	for _, m := range d.Names.Family(t)[1:] {
		if m.Place() == service.Runs {
			if !m.Live.Paused || slices.Contains(reached, m.PID) {
				continue
			}
			if err := d.Kernel.Signal(m.PID, types.SIGRESUME); goesOn(err) {
				resp.Woken, lost = append(resp.Woken, m.PID), cmp.Or(lost, err)
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
	resp.Affected, err = d.Kernel.SignalTree(resp.PID, types.SIGRESUME) // below one that is paused, all that are launched are too
	if !goesOn(err) {
		return resp, err
	}
	woken, uplost := d.chain.thawAbove(above, 0)
	resp.Woken = append(resp.Woken, woken...)
	return resp, cmp.Or(err, lost, uplost)
}

// goesOn reports whether a process goes on that was sent SIGRESUME: that it does may not be written, and then would not hold over the end of the daemon.
func goesOn(err error) bool { return err == nil || types.CodeOf(err) == types.ErrStorage }

// member resumes one history of a family, as it is. CONFLICT: it has ended meanwhile, or somebody was quicker.
func (d *resumes) member(ctx context.Context, id types.UUID, req *ipc.ResumeRequest, hold chan struct{}) (ipc.ResumeResponse, error) {
	a, err := d.Stored.Unended(ctx, id)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	how := launch.OnlyOn(req)
	how.AcceptRights = req.AcceptRights && req.Tree // who names the tree accepts all of it
	return d.Launcher.Start(ctx, a, how, hold)
}

// passing does what concerns a process that may leave meanwhile, again until it does not: it has ended then, or is suspended.
func (d *resumes) passing(ctx context.Context, t service.Target, do func(t service.Target) (ipc.ResumeResponse, error)) (ipc.ResumeResponse, error) {
	var woken []types.PID
	for began := time.Now(); ; {
		t = d.Names.present(ctx, d.Kernel, t)
		r, err := do(t)
		if r.Woken = slices.Concat(woken, r.Woken); !kernel.Passing(err) || time.Since(began) > launch.LeaveTime || ctx.Err() != nil {
			return r, err
		}
		woken = r.Woken
		if now, ok := d.Names.ByUUID(t.UUID); ok {
			t = now
		}
	}
}
