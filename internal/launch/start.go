package launch

import (
	"context"
	"errors"
	"time"

	"rnix/internal/profile"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// Start goes on with an opened history. a is closed if it fails.
func (l *Launcher) Start(ctx context.Context, a *Opened, req *ipc.ResumeRequest, hold <-chan struct{}) (ipc.ResumeResponse, error) {
	r, err := l.Plan(a, req)
	if err != nil {
		a.Close()
		return ipc.ResumeResponse{}, err
	}
	return l.Launch(ctx, r, hold)
}

// launchOnce tries to start the process of a history, below its parent if that is alive. Its lease is given back if
// that fails.
func (l *Launcher) launchOnce(ctx context.Context, r *Ready, hold <-chan struct{}) (ipc.ResumeResponse, error) {
	a := r.Opened
	resp := ipc.ResumeResponse{Mode: "continue", From: a.From, Step: a.State.Step}
	r.Opts.From.Hold = hold
	if pid, ok := l.Stored.Stays(ctx, a.Was.ParentUUID); ok && !a.Fork {
		r.Opts.ParentPID = pid
	}
	if p, ok := r.Opts.Profile.(*profile.Profile); ok {
		if err := l.Sessions.Open(ctx, r.Opts.UUID, p, r.Choice.Provider.Name); err != nil {
			return resp, errors.Join(err, a.Rec.Close())
		}
	}
	seq, sleep := l.Seq(), func() {}
	if !a.Fork {
		var err error
		if sleep, err = l.Stored.Cards.Reopen(a.Rec.ID, wakes); err != nil {
			l.Sessions.Ended(r.Opts.UUID)
			return resp, errors.Join(err, a.Rec.Close())
		}
	}
	pid, err := l.Kernel.SpawnContext(ctx, a.Was.Intent, r.Agent, r.Opts)
	if err != nil {
		sleep()
		l.Sessions.Ended(r.Opts.UUID)
		return resp, err
	}
	l.Sessions.Begun(r.Opts.UUID)
	i, err := l.Kernel.Info(pid)
	if err != nil {
		return resp, err
	}
	resp.SpawnResponse, resp.WorkDir, resp.InDoubt = Spawned(i, r.Choice, seq, r.Warnings), i.WorkDir, r.Doubts
	if set := profile.SettingsIn(&step.Settled{Settings: r.Opts.Settings}); set.Tree != nil {
		resp.Worktree = Worktree(set.Tree, &i)
	}
	if o := a.State.Origin; o != nil {
		resp.OriginUUID = o.Origin
	}
	return resp, nil
}

// wakes is how a history looks that is resumed and has not begun yet.
func wakes(info *step.ProcInfo) {
	info.State, info.Suspended, info.Exit, info.DeadAt = types.StateCreated, false, nil, time.Time{}
}

// Launch starts the process of a history, below its parent if that is alive. Its lease is given back if that fails. One whose parent leaves before
// it is there is started again without it, or below its next run.
func (l *Launcher) Launch(ctx context.Context, r *Ready, hold <-chan struct{}) (ipc.ResumeResponse, error) {
	paused := r.State.Paused
	for began := time.Now(); ; {
		id, from := r.Rec.ID, r.State.Seq
		resp, err := l.launchOnce(ctx, r, hold)
		if r.leave != nil {
			r.leave()
		}
		if !kernel.Passing(err) || time.Since(began) > LeaveTime || ctx.Err() != nil {
			return resp, err
		}
		a, oerr := l.Stored.Open(ctx, id)
		if oerr != nil {
			return resp, oerr
		}
		if a.State.Phase == recovery.Ended && a.State.Seq > from || a.State.Paused && !paused { // a person was quicker
			a.Close()
			return resp, types.Errorf(types.ErrConflict, "Resume", id.String(), "it was ended or paused meanwhile")
		}
		if r, err = r.Retry(a); err != nil {
			a.Close()
			return resp, err
		}
	}
}
