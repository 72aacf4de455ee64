package lifecycle

import (
	"cmp"
	"context"
	"fmt"

	"rnix/internal/launch"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// resumes answers who asks that processes go on: those that are paused, and those that are only on disk.
type resumes struct {
	Names    *Names
	Access   *Access
	Stored   *launch.Stored
	Launcher *launch.Launcher
	Profiles *profile.Reader
	Seq      func() uint64
	Kernel   resumeKernel
	Ground   Ground
	Begin    Start
	Auto     Auto
	chain    *Resumer
	forks    *forks
}

// resumeKernel is what of the kernel is asked to resume processes that are paused in it.
type resumeKernel interface {
	Table
	waiter
	Subtree(pid types.PID) ([]types.PID, error)
	Signal(pid types.PID, sig types.Signal) error
	SignalTree(pid types.PID, sig types.Signal) (int, error)
	Suspend(ctx context.Context, pid types.PID) error
}

func (d *resumes) resume(ctx context.Context, peer *ipc.Peer, req ipc.ResumeRequest) (ipc.ResumeResponse, error) {
	if err := launch.CheckResume(&req); err != nil {
		return ipc.ResumeResponse{}, err
	}
	err := d.Ground.Settled(ctx)
	if err == nil {
		err = d.Begin.Ready(ctx)
	}
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	t, err := d.Names.Resolve(req.Target)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	owner, inside := d.Access.AgentOf(peer)
	req.Person = !inside
	if inside && (req.Fork || req.AcceptRights || launch.Changes(&req) || t.Live == nil || !t.Live.Paused || !d.Access.InSubtree(owner, t.PID)) {
		return ipc.ResumeResponse{}, outside("Resume", owner, "resume paused processes below it only, and as they are", t.PID)
	}
	switch {
	case req.Fork:
		return d.forks.fork(ctx, t, &req)
	case req.Tree && inside:
		n, err := d.Kernel.SignalTree(t.PID, types.SIGRESUME)
		return ipc.ResumeResponse{Mode: "live", SpawnResponse: ipc.SpawnResponse{PID: t.PID, UUID: t.UUID, Schema: t.Live.Schema}, Affected: n}, err
	}
	var family bool
	r, err := d.passing(ctx, t, func(t service.Target) (ipc.ResumeResponse, error) {
		if family = req.Tree || !launch.Changes(&req) && d.Names.StandsForAll(t); family {
			return d.family(ctx, t, &req)
		}
		return d.one(ctx, t, &req, owner)
	})
	if err == nil && !family {
		if now, ok := d.Names.ByUUID(t.UUID); ok {
			r.Paused = d.Names.Apart(now, true)
		}
	}
	return r, d.Ground.Lost(&t, req.Target, err)
}

// one lets one process go on, with those for which it waits and that wait for it.
func (d *resumes) one(ctx context.Context, t service.Target, req *ipc.ResumeRequest, owner types.PID) (ipc.ResumeResponse, error) {
	if r, ok := d.byItself(ctx, t, req); ok {
		return r, nil // what was asked for is done already
	}
	if t.Live != nil && t.Live.State < types.StateZombie {
		if !t.Live.Paused {
			return ipc.ResumeResponse{}, &types.SyscallError{Syscall: "Resume", PID: t.PID, Device: t.UUID.String(), Code: types.ErrConflict,
				Err: fmt.Errorf("it is running as PID %d; pause it first, or make a copy of it with --fork", t.PID)}
		}
		if !launch.Changes(req) {
			return d.thaw(t, owner)
		}
		if err := d.Kernel.Suspend(ctx, t.PID); err != nil {
			return ipc.ResumeResponse{}, err
		}
		d.chain.parted(ctx, t.Live.PPID)
	}
	if info, ok := d.Stored.Get(t.UUID); ok && req.Person && info.Why() == types.SuspendKey {
		d.Profiles.Keys.Anew()
	}
	return d.chain.Continued(ctx, t.UUID, req, nil)
}

// liveResponse says of a process that runs that it goes on as it is.
func liveResponse(t *service.Target, seq uint64) ipc.ResumeResponse {
	return ipc.ResumeResponse{Mode: "live", Step: t.Live.Step, WorkDir: t.Live.WorkDir,
		SpawnResponse: ipc.SpawnResponse{PID: t.PID, UUID: t.UUID, Name: t.Live.Name, Provider: t.Live.Provider, Model: t.Live.Model,
			MaxSteps: t.Live.MaxSteps, Schema: t.Live.Schema, Seq: seq}}
}

// thaw lets a paused process go on that is in the kernel's table, and the paused processes above it: those
// below top, if an agent asks for it, or all. STORAGE: they do, and one of them would not over the end of the daemon.
func (d *resumes) thaw(t service.Target, top types.PID) (ipc.ResumeResponse, error) {
	resp := liveResponse(&t, d.Seq())
	err := d.Kernel.Signal(t.PID, types.SIGRESUME)
	if goesOn(err) && t.PID != top {
		var above error
		resp.Woken, above = d.chain.thawAbove(t.Live.PPID, top)
		err = cmp.Or(err, above)
	}
	return resp, err
}

// byItself answers who asks for a process that went on by itself when the daemon started, the first time: it runs, or
// it has completed since, and would be paid for once more if it went on from there.
func (d *resumes) byItself(ctx context.Context, t service.Target, req *ipc.ResumeRequest) (ipc.ResumeResponse, bool) {
	r, ok := d.Auto.Take(t.UUID)
	if !ok || launch.Changes(req) || t.PID != r.PID || t.Live != nil && t.Live.Paused {
		return r, false
	}
	if t.Live != nil && t.Live.State < types.StateZombie {
		r.Warnings = append(r.Warnings, "it was resumed automatically when the daemon started")
		return r, true
	}
	if t.Live != nil {
		if _, err := d.Kernel.WaitInfo(ctx, t.PID); err != nil {
			return r, false
		}
	}
	if info, ok := d.Stored.Get(t.UUID); !ok || !info.Over() || info.Exit == nil || !info.Exit.Answered() {
		return r, false
	}
	r.Warnings = append(r.Warnings, "it was resumed automatically when the daemon started, and has completed since; the same command again resumes it once more")
	return r, true
}
