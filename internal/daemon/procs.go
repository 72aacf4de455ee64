package daemon

import (
	"cmp"
	"context"
	"os"
	"path/filepath"
	"slices"
	"time"

	"rnix/internal/moved"
	"rnix/internal/price"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// processes answers what concerns processes that exist, alive or on disk.
type processes struct{ *Daemon }

func (d processes) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.Wait, d.wait)
	on(d.Daemon, s, ipc.Signal, d.signal)
	on(d.Daemon, s, ipc.SignalTree, d.signalTree)
	on(d.Daemon, s, ipc.ListProcs, d.listProcs)
	on(d.Daemon, s, ipc.GetProcDetail, d.procDetail)
	on(d.Daemon, s, ipc.ListSteps, d.listSteps)
	on(d.Daemon, s, ipc.GetStepDetail, d.stepDetail)
	onStream(d.Daemon, s, ipc.Events, eventReader{d}.streamEvents)
	onStream(d.Daemon, s, ipc.WatchProcs, watching{d}.watch)
	on(d.Daemon, s, ipc.ListMessages, conversations{d}.list)
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
		ctx, cancel = context.WithTimeout(ctx, time.Duration(min(req.TimeoutMs, maxTimeoutMs))*time.Millisecond)
		defer cancel()
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
	if below, any := accounts(d).Below(r.UUID, nobody); any {
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
		ElapsedMs: storedElapsed(i).Milliseconds(), Steps: i.Step, Suspended: i.Suspended || i.Exit == nil}
	if i.Exit != nil {
		r.Exit = *i.Exit
	}
	return r
}

func storedElapsed(i *step.ProcInfo) time.Duration {
	if i.ActiveTotal > 0 {
		return i.ActiveTotal
	}
	end := i.DeadAt
	if end.IsZero() {
		end = i.UpdatedAt
	}
	return max(end.Sub(i.CreatedAt)-i.PausedTotal, 0)
}

// alive resolves a target that must be running in this kernel.
func (d processes) alive(op, text string) (target, error) {
	t, err := d.names.Resolve(text)
	if err == nil {
		err = t.MustRun(op, text)
	}
	return t, err
}

func (d processes) listProcs(ctx context.Context, _ *ipc.Peer, req ipc.ListRequest) (ipc.ListResponse, error) {
	if req.Limit < 0 {
		return ipc.ListResponse{}, types.Errorf(types.ErrInvalid, "list_procs", "", "limit %d is negative", req.Limit)
	}
	settledSoon(ctx, d.Daemon)
	return watching{d}.table(req), nil
}

// table lists processes. Its Seq is read first: all up to it is in the rows.
func (d watching) table(req ipc.ListRequest) ipc.ListResponse {
	resp := ipc.ListResponse{Procs: []ipc.Proc{}, Seq: d.events.Last(), At: time.Now()}
	var sum tally
	seen := map[types.UUID]bool{}
	for _, i := range d.kernel.List() {
		p := d.wireProc(&i)
		sum.add(&p, 1)
		resp.Procs = append(resp.Procs, p)
		seen[i.UUID] = true
	}
	var stored []ipc.Proc
	list := d.journal.Index().Open()
	if req.All {
		list = d.journal.Index().List()
	}
	for n := range list {
		if seen[list[n].UUID] {
			continue
		}
		p := storedProc(&list[n])
		sum.add(&p, 1)
		if req.All || p.State == "suspended" {
			p.Session = d.platforms.owing(p.UUID)
			stored = append(stored, p)
		}
	}
	if req.All {
		stored = append(d.archived(), stored...)
	}
	if req.Limit > 0 && len(stored) > req.Limit { // the newest are last
		resp.Hidden = len(stored) - req.Limit
		stored = stored[len(stored)-req.Limit:]
	}
	resp.Procs = append(stored, resp.Procs...)
	slices.SortStableFunc(resp.Procs, func(a, b ipc.Proc) int { return cmp.Compare(a.PID, b.PID) })
	resp.Totals = sum.totals()
	return resp
}

// wireProc is a living process as ps shows it.
func (d processes) wireProc(i *kernel.Info) ipc.Proc {
	p := ipc.Proc{
		PID: i.PID, UUID: i.UUID, PPID: i.PPID, ParentUUID: i.ParentUUID, Name: i.Name, State: i.StateName(), Wait: i.Reason,
		WaitSince: i.WaitSince, WaitUntil: i.WaitUntil, PausedAt: i.PausedAt, Intent: i.Intent, WorkDir: i.WorkDir, Agent: i.Agent, Kind: i.Kind, Provider: i.Progress.Provider, Model: i.Progress.Model,
		Step: i.Progress.Step, MaxSteps: i.MaxSteps, TokensUsed: i.Progress.Tokens, Estimated: i.Progress.Estimated, Budget: i.Budget,
		Suspect: i.Suspect, BudgetUSD: i.BudgetUSD.Float(), Unpriced: i.Progress.Unpriced, Purse: i.Purse, CostUSD: i.Progress.CostUSD, CreatedAt: i.CreatedAt, UpdatedAt: i.EndedAt, ElapsedMs: i.Elapsed.Milliseconds(), Exit: i.Exit,
	}
	p.Groups = groups(d).labels(i.Groups)
	p.Session = platformer(d).wire(i.UUID)
	if h := i.Hand; h != nil {
		p.Doing = &ipc.Doing{Tool: h.Tool, Path: h.Path, Since: h.Since, Step: h.Step, Calls: h.Calls}
	}
	if all := d.procs.Children(i.PID); len(all) > 0 {
		rss := d.memory.of(d.procs)
		for _, c := range all {
			p.Children = append(p.Children, ipc.OSChild{PID: c.PID, Kind: string(c.Kind), Command: c.Command, Started: c.StartedAt, RSSBytes: rss[c.PID]})
		}
	}
	return p
}

// storedProc is a process that is only on disk.
func storedProc(i *step.ProcInfo) ipc.Proc {
	state, wait := i.State.String(), i.SuspendReason
	switch {
	case i.Suspended:
		state = "suspended"
	case i.State < types.StateDead && i.Exit == nil: // nobody has looked at it since the daemon started
		state, wait = "suspended", "the daemon ended without warning"
	}
	paused := i.PausedAt
	if state != stateSuspended || wait != reasonPaused {
		paused = time.Time{}
	} else if paused.IsZero() { // an older file does not say when
		paused = i.UpdatedAt
	}
	return ipc.Proc{
		PID: i.PID, UUID: i.UUID, PPID: i.PPID, ParentUUID: i.ParentUUID, Name: i.Name, State: state, Wait: wait, WaitUntil: i.WakeAt, WaitSince: paused, PausedAt: paused,
		Intent: i.Intent, WorkDir: i.WorkDir, Agent: i.Agent, Kind: i.Kind, Provider: i.Provider, Model: i.Model, Step: i.Step, MaxSteps: i.MaxSteps,
		TokensUsed: i.TokensUsed, Budget: i.ContextBudget, BudgetUSD: i.BudgetUSD, Unpriced: i.Unpriced, Purse: i.Purse, CostUSD: i.CostUSD, CreatedAt: i.CreatedAt, UpdatedAt: i.UpdatedAt,
		ElapsedMs: storedElapsed(i).Milliseconds(), Exit: i.Exit,
	}
}

func (d processes) procDetail(ctx context.Context, _ *ipc.Peer, req ipc.TargetRequest) (ipc.ProcDetail, error) {
	t, err := d.names.Resolve(req.Target)
	if err != nil {
		return ipc.ProcDetail{}, err
	}
	r := ipc.ProcDetail{Dir: d.journal.Dir(t.UUID)}
	if i := t.Live; i != nil {
		r.Proc = d.wireProc(i)
		r.ReadRoots, r.AllowedDevices, r.DeniedDevices = i.ReadRoots, i.Rights.Allowed, i.Rights.Denied
		r.MCPMounts, r.Skills, r.Tools, r.Result, r.Plan = i.MCPMounts, i.Skills, i.Tools, i.Result, i.Plan
	} else {
		i := d.whole(t.Info)
		r.Proc = storedProc(i)
		r.Session = d.platforms.owing(t.UUID)
		r.ReadRoots, r.AllowedDevices, r.DeniedDevices = i.ReadRoots, i.AllowedDevices, i.DeniedDevices
		r.MCPMounts, r.Skills, r.Result = i.MCPMounts, i.Skills, i.Result
		if m, err := step.ReadMeta(d.journal.FS(), r.Dir); err == nil {
			for _, tool := range m.Tools {
				r.Tools = append(r.Tools, tool.Name)
			}
		}
	}
	trail, damage, err := outliner(d).trail(ctx, &t, req.Target)
	switch {
	case types.CodeOf(err) == types.ErrNotFound && !exists(r.Dir):
		return ipc.ProcDetail{}, err
	case err != nil:
		r.Damage = err.Error()
		return r, nil
	}
	r.Damage = damage
	if t.Live == nil || t.Live.State >= types.StateZombie {
		r.Interrupted = trail.Interrupted()
	}
	return r, nil
}

// scratch is where a history's long outputs go.
func (d *Daemon) scratch(id types.UUID) string { return filepath.Join(d.journal.Dir(id), "scratch") }

// exists reports whether a path is there.
func exists(path string) bool { _, err := os.Stat(path); return err == nil }
