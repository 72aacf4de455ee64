package lifecycle

import (
	"cmp"
	"context"
	"log/slog"
	"slices"
	"time"

	"rnix/internal/launch"
	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Resumer resumes histories, and with each those that wait for it and those for which it waits. Its fields are set before it is used.
type Resumer struct {
	Kernel   Kernel
	Stored   *launch.Stored
	Launcher *launch.Launcher
	Log      *slog.Logger
}

// Continued goes on with a history, and with those that wait for it or that it waits for. still is asked
// once nobody else can change the history, for who has not been asked by a person: a history that is not
// as it was is CONFLICT, and what a person has paused stays so. STORAGE, with the PID of its run: it goes on, and the end of a pause would not hold over
// the end of the daemon.
func (d *Resumer) Continued(ctx context.Context, id types.UUID, req *ipc.ResumeRequest, still func(*recovery.State) bool) (ipc.ResumeResponse, error) {
	hold := make(chan struct{})
	defer close(hold) // all of them are there, or will not be
	a, err := d.Stored.Open(ctx, id)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	if still != nil && !still(a.State) {
		a.Close()
		return ipc.ResumeResponse{}, types.Errorf(types.ErrConflict, "Resume", id.String(), "it has gone on meanwhile")
	}
	next, err := d.Launcher.Plan(a, req)
	if err != nil {
		a.Close()
		return ipc.ResumeResponse{}, err
	}
	woken, above, live := d.wakeAbove(ctx, a.Was.ParentUUID, req, hold, still == nil)
	next.Retry = func(again *launch.Opened) (*launch.Ready, error) { // its parent was suspended meanwhile, and goes on with it
		w, s, l := d.wakeAbove(ctx, a.Was.ParentUUID, req, hold, still == nil)
		woken, above, live = append(woken, w...), append(above, s...), cmp.Or(l, live)
		return d.Launcher.Plan(again, req)
	}
	resp, err := d.Launcher.Launch(ctx, next, hold)
	if err != nil {
		return resp, err
	}
	if still == nil { // not before it is there: who waits for it would end without it
		if err = d.Kernel.Signal(resp.PID, types.SIGRESUME); types.CodeOf(err) != types.ErrStorage { // below a parent that is paused, it is too
			err = nil // it has ended meanwhile
		}
		thawed, lost := d.thawAbove(live, 0)
		woken, err = append(woken, thawed...), cmp.Or(err, lost)
	}
	resp.Woken = append(woken, d.wakeBelow(ctx, a.State, req, hold)...)
	for _, s := range above { // they wait for others too
		resp.Woken = append(resp.Woken, d.wakeBelow(ctx, s, launch.OnlyOn(req), hold)...)
	}
	return resp, err
}

// partTime is how long a resume waits for a parent to be suspended. One that has other children to wait
// for takes longer, and finds this one alive then.
const partTime = time.Second

// parted waits for the parents of a process that was suspended: those that wait for nothing else are
// suspended too, and go on with it.
func (d *Resumer) parted(ctx context.Context, pid types.PID) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	for pid != 0 {
		i, err := d.Kernel.Info(pid)
		if err == nil && i.Kind != "" {
			return // what has a body waits for its child to go on
		}
		if err == nil {
			_, err = d.Kernel.WaitInfo(ctx, pid)
		}
		if err != nil {
			return
		}
		pid = i.PPID
	}
}

// wakeAbove resumes the suspended processes above a history, the uppermost first, so that each finds its
// child alive, and returns what they had come to, and the PID of the first above that runs; 0 = none. One that cannot go on is left alone, and
// its child goes on without it. With thaw, what a person has paused goes on too, but what runs: the caller ends its pause when all are there.
func (d *Resumer) wakeAbove(ctx context.Context, parent types.UUID, req *ipc.ResumeRequest, hold chan struct{}, thaw bool) (woken []types.PID, states []*recovery.State, live types.PID) {
	var above []types.UUID
	for id := parent; id != (types.UUID{}) && len(above) < service.MaxAncestors; {
		if pid, ok := d.Stored.Stays(ctx, id); ok {
			live = pid
			break
		}
		info, ok := d.Stored.Get(id)
		if !ok || !info.Suspended || !thaw && info.Why() == types.SuspendPaused {
			break
		}
		above = append(above, id)
		id = info.ParentUUID
	}
	for _, id := range slices.Backward(above) {
		if pid, s, ok := d.quietly(ctx, id, launch.OnlyOn(req), hold); ok {
			woken, states = append(woken, pid), append(states, s)
		}
	}
	return woken, states, live
}

// wakeBelow resumes the suspended processes for which a history waits, and those for which they wait.
// What a person has paused stays so.
func (d *Resumer) wakeBelow(ctx context.Context, s *recovery.State, req *ipc.ResumeRequest, hold chan struct{}) (woken []types.PID) {
	var below []types.UUID
	for _, a := range recovery.Awaits(s) {
		below = append(below, a.IDs...)
	}
	for _, id := range below {
		info, ok := d.Stored.Get(id)
		if _, alive := d.Stored.Running(id); alive || !ok || !info.Suspended || info.Why() == types.SuspendPaused {
			continue
		}
		how := launch.OnlyOn(req)
		if info.Purse == nil || info.Purse.UUID == id { // it waits for its own budget, and not for that of one above it
			how.Budget, how.BudgetUSD = req.Budget, req.BudgetUSD
		}
		a, err := d.Stored.Unended(ctx, id)
		if err != nil {
			d.Log.Warn("resume", "uuid", id, "err", err)
			continue
		}
		resp, err := d.Launcher.Start(ctx, a, how, hold)
		if err != nil {
			d.Log.Warn("resume", "uuid", id, "err", err)
			continue
		}
		woken = append(append(woken, resp.PID), d.wakeBelow(ctx, a.State, how, hold)...)
	}
	return woken
}

// quietly resumes a history and only logs why it could not be.
func (d *Resumer) quietly(ctx context.Context, id types.UUID, req *ipc.ResumeRequest, hold chan struct{}) (types.PID, *recovery.State, bool) {
	a, err := d.Stored.Unended(ctx, id)
	if err == nil {
		var resp ipc.ResumeResponse
		if resp, err = d.Launcher.Start(ctx, a, req, hold); err == nil {
			return resp.PID, a.State, true
		}
	}
	d.Log.Warn("resume", "uuid", id, "err", err)
	return 0, nil, false
}

// ReviveChild resumes a suspended history for the body of its parent, with the parent's environment.
func (d *Resumer) ReviveChild(ctx context.Context, parent *kernel.Process, id types.UUID) (types.PID, error) {
	req := &ipc.ResumeRequest{}
	if p, ok := profile.Of(parent); ok {
		req.Env = p.Env
	}
	info, ok := d.Stored.Get(id)
	switch {
	case !ok:
		return 0, types.Errorf(types.ErrNotFound, "Resume", id.String(), "there is no such history")
	case info.Exit != nil && !info.Suspended && info.Exit.Code != types.ExitCancelled: // what was ended with its parent goes on with it
		return 0, types.Errorf(types.ErrConflict, "Resume", id.String(), "it has ended")
	}
	hold := make(chan struct{})
	defer close(hold)
	a, err := d.Stored.Open(ctx, id)
	if err != nil {
		return 0, err
	}
	switch crashes := d.Stored.Cards.Crashes(a.State); { // what goes on by itself does so here, too
	case a.State.Paused:
		a.Close()
		return 0, types.Errorf(types.ErrUnavailable, "", "", "paused; resume it: rnix resume %d", a.Was.PID)
	case crashes >= launch.MaxCrashes:
		a.Close()
		return 0, types.Errorf(types.ErrUnavailable, "", "", "%d crashes; resume it: rnix resume %d (the daemon has broken off in its step %d each time)", crashes, a.Was.PID, a.State.Step+1)
	}
	resp, err := d.Launcher.Start(ctx, a, req, hold)
	if err != nil {
		return 0, err
	}
	d.wakeBelow(ctx, a.State, req, hold)
	return resp.PID, nil
}

// thawAbove ends the pauses of a process and of those above it, up to top, and returns which of them were paused. lost is the first error of those that go
// on, but would not over the end of the daemon.
func (d *Resumer) thawAbove(pid, top types.PID) (woken []types.PID, lost error) {
	for pid != 0 && pid != top && len(woken) < service.MaxAncestors {
		i, err := d.Kernel.Info(pid)
		if err != nil {
			break
		}
		if i.Paused {
			if err = d.Kernel.Signal(pid, types.SIGRESUME); goesOn(err) {
				woken, lost = append(woken, pid), cmp.Or(lost, err)
			}
		}
		pid = i.PPID
	}
	return woken, lost
}

// Revival decides how a workflow is resumed.
type Revival interface {
	// Decide is asked when nobody else can change the history, and again if that has to be opened anew: how it is resumed, or why it is not.
	Decide(s *recovery.State) (*ipc.ResumeRequest, error)
	// Begin is given the program that was made of it, before that starts. Only the last one does.
	Begin(b kernel.Body) error
	// Begun is called when it runs; wake resumes one of its nodes, and reports whether it could.
	Begun(wake func(id types.UUID) bool)
}

// ResumeRun resumes the history of a workflow, and what is suspended above it. STORAGE, with the PID of its run: as of Continued.
func (d *Resumer) ResumeRun(ctx context.Context, id types.UUID, how *ipc.ResumeRequest, r Revival) (ipc.ResumeResponse, error) {
	hold := make(chan struct{})
	defer close(hold) // the run looks for its nodes when all of them are there
	var above types.PID
	var settled func(a *launch.Opened) (*launch.Ready, error)
	settled = func(a *launch.Opened) (*launch.Ready, error) {
		req, err := r.Decide(a.State)
		if err != nil {
			return nil, err
		}
		next, err := d.Launcher.Plan(a, req)
		if err == nil {
			err = r.Begin(next.Opts.Body)
		}
		if err != nil {
			return nil, err
		}
		next.Retry = settled // its parent was suspended meanwhile, and goes on with it
		_, _, up := d.wakeAbove(ctx, a.Was.ParentUUID, how, hold, true)
		above = cmp.Or(up, above)
		return next, nil
	}
	a, err := d.Stored.Open(ctx, id)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	next, err := settled(a)
	if err != nil {
		a.Close()
		return ipc.ResumeResponse{}, err
	}
	resp, err := d.Launcher.Launch(ctx, next, hold)
	if err != nil {
		return resp, err
	}
	_, lost := d.thawAbove(above, 0)
	r.Begun(func(id types.UUID) bool {
		_, _, ok := d.quietly(ctx, id, launch.OnlyOn(how), hold)
		return ok
	})
	return resp, lost
}
