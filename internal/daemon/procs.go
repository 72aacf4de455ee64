package daemon

import (
	"context"
	"os"
	"path/filepath"

	"rnix/internal/moved"
	"rnix/internal/price"
	"rnix/internal/procview"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// processes answers what concerns processes that exist, alive or on disk.
type processes struct{ *Daemon }

func (d processes) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.Wait, d.wait)
	on(d.Daemon, s, ipc.Signal, d.signal)
	on(d.Daemon, s, ipc.SignalTree, d.signalTree)
	on(d.Daemon, s, ipc.GetProcDetail, d.procDetail)
}

func (d processes) wait(ctx context.Context, _ *ipc.Peer, req ipc.WaitRequest) (ipc.WaitResponse, error) {
	if err := d.settled(ctx); err != nil {
		return ipc.WaitResponse{}, err
	}
	t, err := d.names.Resolve(req.Target)
	if err != nil {
		return ipc.WaitResponse{}, err
	}
	switch {
	case req.TimeoutMs < 0:
		return ipc.WaitResponse{}, types.Errorf(types.ErrInvalid, "Wait", "", "the time limit is negative; 0 means none")
	case req.TimeoutMs > 0:
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, service.Timeout(req.TimeoutMs))
		defer cancel()
	}
	if t, err = resumedLater(ctx, d, t); err != nil {
		return ipc.WaitResponse{}, err
	}
	if t.Live == nil {
		i := d.whole(t.Info)
		return withFamily(d, waitedOnDisk(i), i.Provider), nil
	}
	i, err := d.kernel.WaitInfo(ctx, t.PID)
	if err != nil {
		return ipc.WaitResponse{}, err
	}
	r := ipc.WaitResponse{PID: i.PID, UUID: i.UUID, Result: i.Result, TokensUsed: i.Progress.Tokens, Estimated: i.Progress.Estimated,
		CostUSD: i.Progress.CostUSD, ElapsedMs: i.Elapsed.Milliseconds(), Steps: i.Progress.Step, Suspended: i.Suspended || i.Exit == nil}
	if i.Exit != nil {
		r.Exit = *i.Exit
	}
	return withFamily(d, r, i.Progress.Provider), nil
}

// withFamily adds what the descendants of a process have used, if it has any. One that has no provider shows what they have
// used as its own.
func withFamily(d processes, r ipc.WaitResponse, provider string) ipc.WaitResponse {
	if provider == "" {
		return r
	}
	if below, any := d.billing.Below(r.UUID, nil); any {
		r.FamilyTokens, r.FamilyUSD = r.TokensUsed+below.Tokens, (price.FromFloat(r.CostUSD) + below.USD).Float()
	}
	return r
}

// whole returns what a history looks like with its texts in full, which the index cuts.
func (d processes) whole(i *step.ProcInfo) *step.ProcInfo {
	if full, err := step.ReadInfo(d.journal.FS(), d.journal.Dir(i.UUID)); err == nil {
		full.WorkDir, full.ReadRoots = here(d.Daemon, full.WorkDir), moved.All(d.places.DataDir, full.ReadRoots)
		return full
	}
	return i
}

// waitedOnDisk answers for a process that ended before this daemon started.
func waitedOnDisk(i *step.ProcInfo) ipc.WaitResponse {
	r := ipc.WaitResponse{PID: i.PID, UUID: i.UUID, Result: i.Result, TokensUsed: i.TokensUsed, CostUSD: i.CostUSD,
		ElapsedMs: procview.Elapsed(i).Milliseconds(), Steps: i.Step, Suspended: i.Suspended || i.Exit == nil}
	if i.Exit != nil {
		r.Exit = *i.Exit
	}
	return r
}

// alive resolves a target that must be running in this kernel.
func (d processes) alive(op, text string) (target, error) {
	t, err := d.names.Resolve(text)
	if err == nil {
		err = t.MustRun(op, text)
	}
	return t, err
}

func (d processes) procDetail(ctx context.Context, _ *ipc.Peer, req ipc.TargetRequest) (ipc.ProcDetail, error) {
	t, err := d.names.Resolve(req.Target)
	if err != nil {
		return ipc.ProcDetail{}, err
	}
	r := ipc.ProcDetail{Dir: d.journal.Dir(t.UUID)}
	if i := t.Live; i != nil {
		r.Proc = d.looks.Living(i)
		r.ReadRoots, r.AllowedDevices, r.DeniedDevices = i.ReadRoots, i.Rights.Allowed, i.Rights.Denied
		r.MCPMounts, r.Skills, r.Tools, r.Result, r.Plan = i.MCPMounts, i.Skills, i.Tools, i.Result, i.Plan
	} else {
		i := d.whole(t.Info)
		r.Proc = procview.Stored(i)
		r.Session = d.platforms.Owing(t.UUID)
		r.ReadRoots, r.AllowedDevices, r.DeniedDevices = i.ReadRoots, i.AllowedDevices, i.DeniedDevices
		r.MCPMounts, r.Skills, r.Result = i.MCPMounts, i.Skills, i.Result
		if m, err := step.ReadMeta(d.journal.FS(), r.Dir); err == nil {
			for _, tool := range m.Tools {
				r.Tools = append(r.Tools, tool.Name)
			}
		}
	}
	trail, damage, err := d.histories.Trail(ctx, &t, req.Target)
	switch {
	case types.CodeOf(err) == types.ErrNotFound && !exists(r.Dir):
		return ipc.ProcDetail{}, err
	case err != nil:
		r.Damage = err.Error()
		return r, nil
	}
	r.Damage = damage
	if t.Live == nil || t.Live.State >= types.StateZombie {
		r.Interrupted = service.Each(trail.Interrupted(), service.WireIntent)
	}
	return r, nil
}

// scratch is where a history's long outputs go.
func (d *Daemon) scratch(id types.UUID) string { return filepath.Join(d.journal.Dir(id), "scratch") }

// exists reports whether a path is there.
func exists(path string) bool { _, err := os.Stat(path); return err == nil }
