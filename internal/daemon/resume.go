package daemon

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"rnix/internal/price"
	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// resumer lets processes go on: those that are paused, and those that are only on disk.
type resumer struct{ *Daemon }

// maxInput bounds what a person says at the point of resume, in bytes.
const maxInput = 1 << 20

func (d resumer) resume(ctx context.Context, peer *ipc.Peer, req ipc.ResumeRequest) (ipc.ResumeResponse, error) {
	if err := checkResume(&req); err != nil {
		return ipc.ResumeResponse{}, err
	}
	err := d.settled(ctx)
	if err == nil {
		err = d.bootstrap.wait(ctx)
	}
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	t, err := d.names.Resolve(req.Target)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	owner, inside := d.agentOf(peer)
	req.Person = !inside
	if inside && (req.Fork || changes(&req) || t.Live == nil || !t.Live.Paused || !d.inSubtree(owner, t.PID)) {
		e := service.Outside("Resume", owner, "resume paused processes of its own subtree only, and as they are")
		e.PID = t.PID
		return ipc.ResumeResponse{}, e
	}
	switch {
	case req.Fork:
		return d.forked(ctx, t, &req)
	case req.Tree && inside:
		n, err := d.kernel.SignalTree(t.PID, types.SIGRESUME)
		return ipc.ResumeResponse{Mode: "live", SpawnResponse: ipc.SpawnResponse{PID: t.PID, UUID: t.UUID}, Affected: n}, err
	}
	var family bool
	r, err := d.passing(ctx, t, func(t target) (ipc.ResumeResponse, error) {
		if family = req.Tree || !changes(&req) && d.names.StandsForAll(t); family {
			return d.family(ctx, t, &req)
		}
		return d.one(ctx, t, &req, owner)
	})
	if err == nil && !family {
		if now, ok := d.names.ByUUID(t.UUID); ok {
			r.Paused = d.names.Apart(now, true)
		}
	}
	return r, d.storage.Lost(&t, req.Target, err)
}

// one lets one process go on, with those for which it waits and that wait for it.
func (d resumer) one(ctx context.Context, t target, req *ipc.ResumeRequest, owner types.PID) (ipc.ResumeResponse, error) {
	if r, ok := d.byItself(ctx, t, req); ok {
		return r, nil // what was asked for is done already
	}
	if t.Live != nil && t.Live.State < types.StateZombie {
		if !t.Live.Paused {
			return ipc.ResumeResponse{}, &types.SyscallError{Syscall: "Resume", PID: t.PID, Device: t.UUID.String(), Code: types.ErrConflict,
				Err: fmt.Errorf("it is running as PID %d; pause it first, or make a copy of it with --fork", t.PID)}
		}
		if !changes(req) {
			return d.thaw(t, owner)
		}
		if err := d.kernel.Suspend(ctx, t.PID); err != nil {
			return ipc.ResumeResponse{}, err
		}
		d.parted(ctx, t.Live.PPID)
	}
	return d.continued(ctx, t, req, nil)
}

// partTime is how long a resume waits for a parent to be suspended. One that has other children to wait
// for takes longer, and finds this one alive then.
const partTime = time.Second

// parted waits for the parents of a process that was suspended: those that wait for nothing else are
// suspended too, and go on with it.
func (d resumer) parted(ctx context.Context, pid types.PID) {
	ctx, cancel := context.WithTimeout(ctx, partTime)
	defer cancel()
	for pid != 0 {
		i, err := d.kernel.Info(pid)
		if err == nil && i.Kind != "" {
			return // what has a body waits for its child to go on
		}
		if err == nil {
			_, err = d.kernel.WaitInfo(ctx, pid)
		}
		if err != nil {
			return
		}
		pid = i.PPID
	}
}

// checkResume refuses what cannot be meant.
func checkResume(req *ipc.ResumeRequest) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Resume", req.Target, format, args...)
	}
	for _, p := range append([]string{req.OnInDoubt}, valuesOf(req.Choices)...) {
		if _, err := recovery.ParsePolicy(p); err != nil {
			return err
		}
	}
	switch {
	case req.Tree && (req.Fork || changes(req)):
		return bad("a family is resumed as it is: no setting of it can be changed at once, and no copy of it is made")
	case req.FromStep != nil && !req.Fork:
		return bad("--from-step needs --fork: a history is never cut, a copy of its beginning is made")
	case req.FromStep != nil && *req.FromStep < 0:
		return bad("there is no step %d", *req.FromStep)
	case req.Name != "" && !req.Fork:
		return bad("a name can be given to a fork only; this process keeps its own")
	case req.Cwd != "" && !req.Fork:
		return bad("a directory can be given to a fork only; this process works where it did")
	case req.Budget != nil && *req.Budget < 0:
		return bad("the budget is %d; 0 means unlimited", *req.Budget)
	case req.BudgetUSD != nil && !(*req.BudgetUSD >= 0 && *req.BudgetUSD <= price.Max.Float()):
		return bad("the budget is %v dollars; give at most %.0f; 0 means unlimited", *req.BudgetUSD, price.Max.Float())
	case req.TimeoutMs != nil && *req.TimeoutMs < 0:
		return bad("the time limit is negative; 0 means none")
	case req.MaxSteps != nil && *req.MaxSteps < 0:
		return bad("the step limit is %d; 0 means none", *req.MaxSteps)
	case len(req.NewInput) > maxInput:
		return bad("the new input has %d bytes and at most %d are taken: put the text into a file and tell the agent to read it", len(req.NewInput), maxInput)
	case !utf8.ValidString(req.NewInput):
		return bad("the new input is not UTF-8")
	case req.NewInput != "" && strings.TrimSpace(req.NewInput) == "":
		return bad("the new input is blank")
	}
	return nil
}

func valuesOf(m map[string]string) []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// changes reports whether a request asks for more than to go on.
func changes(req *ipc.ResumeRequest) bool {
	return req.NewInput != "" || req.Provider != "" || req.Model != "" || req.FallbackProvider != "" || req.FallbackModel != "" ||
		req.Budget != nil || req.BudgetUSD != nil || req.MaxSteps != nil || req.TimeoutMs != nil
}

// liveResponse says of a process that runs that it goes on as it is.
func liveResponse(t *target, seq uint64) ipc.ResumeResponse {
	return ipc.ResumeResponse{Mode: "live", Step: t.Live.Progress.Step, WorkDir: t.Live.WorkDir,
		SpawnResponse: ipc.SpawnResponse{PID: t.PID, UUID: t.UUID, Name: t.Live.Name, Provider: t.Live.Progress.Provider, Model: t.Live.Progress.Model,
			MaxSteps: t.Live.MaxSteps, Seq: seq}}
}

// thaw lets a paused process go on that is in the kernel's table, and the paused processes above it: those
// below top, if an agent asks for it, or all.
func (d resumer) thaw(t target, top types.PID) (ipc.ResumeResponse, error) {
	resp := liveResponse(&t, d.events.Last())
	if err := d.kernel.Signal(t.PID, types.SIGRESUME); err != nil {
		return resp, err
	}
	if t.PID != top {
		resp.Woken = d.thawAbove(t.Live.PPID, top)
	}
	return resp, nil
}

// continued goes on with a history, and with those that wait for it or that it waits for. still is asked
// once nobody else can change the history, for who has not been asked by a person: a history that is not
// as it was is CONFLICT, and what a person has paused stays so.
func (d resumer) continued(ctx context.Context, t target, req *ipc.ResumeRequest, still func(*recovery.State) bool) (ipc.ResumeResponse, error) {
	hold := make(chan struct{})
	defer close(hold) // all of them are there, or will not be
	a, err := reviver(d).open(ctx, t.UUID)
	if err != nil {
		return ipc.ResumeResponse{}, err
	}
	if still != nil && !still(a.state) {
		a.close()
		return ipc.ResumeResponse{}, types.Errorf(types.ErrConflict, "Resume", t.UUID.String(), "it has gone on meanwhile")
	}
	next, err := reviver(d).settle(a, req)
	if err != nil {
		a.close()
		return ipc.ResumeResponse{}, err
	}
	woken, above, live := d.wakeAbove(ctx, a.was.ParentUUID, req, hold, still == nil)
	next.retry = func(again *again) (*ready, error) { // its parent was suspended meanwhile, and goes on with it
		w, s, l := d.wakeAbove(ctx, a.was.ParentUUID, req, hold, still == nil)
		woken, above, live = append(woken, w...), append(above, s...), cmp.Or(l, live)
		return reviver(d).settle(again, req)
	}
	resp, err := reviver(d).launch(ctx, next, hold)
	if err != nil {
		return resp, err
	}
	if still == nil { // not before it is there: who waits for it would end without it
		_ = d.kernel.Signal(resp.PID, types.SIGRESUME) // below a parent that is paused, it is too
		woken = append(woken, d.thawAbove(live, 0)...)
	}
	resp.Woken = append(woken, d.wakeBelow(ctx, a.state, req, hold)...)
	for _, s := range above { // they wait for others too
		resp.Woken = append(resp.Woken, d.wakeBelow(ctx, s, onlyOn(req), hold)...)
	}
	return resp, nil
}

// onlyOn is a request to go on in the same way, and no more.
func onlyOn(req *ipc.ResumeRequest) *ipc.ResumeRequest {
	return &ipc.ResumeRequest{Env: req.Env, OnInDoubt: req.OnInDoubt}
}

// wakeAbove resumes the suspended processes above a history, the uppermost first, so that each finds its
// child alive, and returns what they had come to, and the PID of the first above that runs; 0 = none. One that cannot go on is left alone, and
// its child goes on without it. With thaw, what a person has paused goes on too, but what runs: the caller ends its pause when all are there.
func (d resumer) wakeAbove(ctx context.Context, parent types.UUID, req *ipc.ResumeRequest, hold chan struct{}, thaw bool) (woken []types.PID, states []*recovery.State, live types.PID) {
	var above []types.UUID
	for id := parent; id != (types.UUID{}) && len(above) < service.MaxAncestors; {
		if pid, ok := stays(ctx, d.Daemon, id); ok {
			live = pid
			break
		}
		info, ok := d.stored(id)
		if !ok || !info.Suspended || !thaw && info.SuspendReason == step.ReasonPaused {
			break
		}
		above = append(above, id)
		id = info.ParentUUID
	}
	for _, id := range slices.Backward(above) {
		if pid, s, ok := d.quietly(ctx, id, onlyOn(req), hold); ok {
			woken, states = append(woken, pid), append(states, s)
		}
	}
	return woken, states, live
}

// wakeBelow resumes the suspended processes for which a history waits, and those for which they wait.
// What a person has paused stays so.
func (d resumer) wakeBelow(ctx context.Context, s *recovery.State, req *ipc.ResumeRequest, hold chan struct{}) (woken []types.PID) {
	var below []types.UUID
	for _, a := range recovery.Awaits(s) {
		below = append(below, a.IDs...)
	}
	for _, id := range below {
		info, ok := d.stored(id)
		if _, alive := d.running(id); alive || !ok || !info.Suspended || info.SuspendReason == step.ReasonPaused {
			continue
		}
		how := onlyOn(req)
		if info.Purse == nil || info.Purse.UUID == id { // it waits for its own budget, and not for that of one above it
			how.Budget, how.BudgetUSD = req.Budget, req.BudgetUSD
		}
		a, err := reviver(d).unended(ctx, id)
		if err != nil {
			d.log.Warn("resume", "uuid", id, "err", err)
			continue
		}
		resp, err := reviver(d).start(ctx, a, how, hold)
		if err != nil {
			d.log.Warn("resume", "uuid", id, "err", err)
			continue
		}
		woken = append(append(woken, resp.PID), d.wakeBelow(ctx, a.state, how, hold)...)
	}
	return woken
}

// quietly resumes a history and only logs why it could not be.
func (d resumer) quietly(ctx context.Context, id types.UUID, req *ipc.ResumeRequest, hold chan struct{}) (types.PID, *recovery.State, bool) {
	a, err := reviver(d).unended(ctx, id)
	if err == nil {
		var resp ipc.ResumeResponse
		if resp, err = (reviver(d)).start(ctx, a, req, hold); err == nil {
			return resp.PID, a.state, true
		}
	}
	d.log.Warn("resume", "uuid", id, "err", err)
	return 0, nil, false
}

// alive returns the PID of a history that is running.
func (d *Daemon) running(id types.UUID) (types.PID, bool) {
	p, ok := d.kernel.ByUUID(id)
	if !ok {
		return 0, false
	}
	return p.PID, true
}

// stored returns what is known of a history on disk.
func (d resumer) stored(id types.UUID) (*step.ProcInfo, bool) {
	info, ok := d.journal.Index().Get(id)
	return &info, ok
}

// list lists what can be resumed: paused processes and those that are only on disk, the latest first.
func (d resumer) list(ctx context.Context, _ *ipc.Peer, req ipc.ListRequest) (ipc.ListResponse, error) {
	if err := d.settled(ctx); err != nil {
		return ipc.ListResponse{}, err
	}
	if req.Limit < 0 {
		return ipc.ListResponse{}, types.Errorf(types.ErrInvalid, "list_resumable", "", "limit %d is negative", req.Limit)
	}
	resp := ipc.ListResponse{Procs: []ipc.Proc{}}
	seen := map[types.UUID]bool{}
	for _, i := range d.kernel.List() {
		seen[i.UUID] = true
		if i.Paused || i.State >= types.StateZombie {
			p := d.looks.Living(&i)
			if info, ok := d.stored(i.UUID); ok {
				p.UpdatedAt = info.UpdatedAt
			}
			resp.Procs = append(resp.Procs, p)
		}
	}
	stored := d.journal.Index().List()
	for n := range stored {
		if !seen[stored[n].UUID] {
			resp.Procs = append(resp.Procs, procview.Stored(&stored[n]))
		}
	}
	slices.SortStableFunc(resp.Procs, func(a, b ipc.Proc) int { return cmp.Compare(b.PID, a.PID) })
	if n := len(resp.Procs); req.Limit > 0 && n > req.Limit {
		resp.Procs, resp.Hidden = resp.Procs[:req.Limit], n-req.Limit
	}
	return resp, nil
}

// storedInfo describes a history for the kernel.
func (d *Daemon) storedInfo(id types.UUID) (*step.ProcInfo, error) {
	info, ok := d.journal.Index().Get(id)
	if !ok {
		return d.storage.TakenAway(id)
	}
	return processes{d}.whole(&info), nil
}
