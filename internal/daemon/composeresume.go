package daemon

import (
	"context"
	"errors"
	"slices"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// runResumer lets runs go on.
type runResumer struct{ composer }

// resume lets a run go on: one that is paused or suspended as it stands, and one that has ended with a
// round of its own for what failed, or for one node and those below it. A person asks for it, so paused
// nodes and those that wait for a time go on too.
func (d runResumer) resume(ctx context.Context, peer *ipc.Peer, req ipc.ComposeResumeRequest) (ipc.ComposeUpResponse, error) {
	var none ipc.ComposeUpResponse
	if owner, inside := d.agentOf(peer); inside {
		return none, service.Outside("Compose", owner, "not let runs go on")
	}
	on := ipc.ResumeRequest{Target: req.Target, Env: req.Env, OnInDoubt: req.OnInDoubt, TimeoutMs: req.TimeoutMs, TrustProject: req.TrustProject}
	if err := checkResume(&on); err != nil {
		return none, err
	}
	if req.Budget != nil && *req.Budget < 0 || req.BudgetUSD != nil && !(*req.BudgetUSD >= 0 && *req.BudgetUSD <= 1e9) {
		return none, types.Errorf(types.ErrInvalid, "Compose", req.Target, "a budget is a number of at least 0; 0 means unlimited")
	}
	if err := d.settled(ctx); err != nil {
		return none, err
	}
	t, err := d.meant(ctx, &req)
	if err != nil {
		return none, err
	}
	if t.Live != nil && t.Live.State < types.StateZombie {
		return d.thawed(ctx, &t, &req, &on)
	}
	if t.Live != nil {
		if _, err := d.kernel.WaitInfo(ctx, t.PID); err != nil {
			return none, err
		}
	}
	return d.again(ctx, &t, &req, &on)
}

// thawed lets a run go on that lives: its pause ends, and so does the wait of its suspended nodes.
func (d runResumer) thawed(ctx context.Context, t *target, req *ipc.ComposeResumeRequest, on *ipc.ResumeRequest) (ipc.ComposeUpResponse, error) {
	busy := func(text string) error {
		return &types.SyscallError{Syscall: "Compose", Device: req.Target, PID: t.PID, Code: types.ErrConflict, Err: errors.New(text)}
	}
	resp := ipc.ComposeUpResponse{PID: t.PID, UUID: t.UUID, Name: t.Live.Name, Seq: d.events.Last()}
	switch {
	case req.Node != "":
		return resp, busy("it is running; wait for its end, or end it with `rnix compose down " + t.Live.Name + "`, and do the node again then")
	case req.TimeoutMs != nil:
		return resp, busy("it is running; end it with `rnix compose down " + t.Live.Name + "`, and give it another time limit then")
	case req.Budget != nil || req.BudgetUSD != nil:
		return resp, busy("it is running; give it more with `rnix budget add " + t.Live.Name + " --tokens N` (or --usd X)")
	}
	r, ok := d.foreground(t.PID)
	if !ok {
		return resp, busy("it is ending; try again in a moment")
	}
	nodes := r.Nodes()
	resp.Nodes = len(r.Spec().File.Agents)
	asleep, paused := false, t.Live.Paused
	for i := range nodes {
		if pid := nodes[i].PID; pid != 0 {
			if in, err := d.kernel.Info(pid); err == nil {
				paused = paused || in.Paused
			}
		}
		asleep = asleep || nodes[i].Phase == compose.Suspended
	}
	if !paused && !asleep {
		if r, ok := d.auto.take(t.UUID); ok && r.PID == t.PID { // it was asked for, and the daemon was quicker
			resp.Warnings = append(resp.Warnings, "it was resumed automatically when the daemon started")
			return resp, nil
		}
		return resp, busy("it is running already; see it with `rnix compose ps " + t.Live.Name + "`")
	}
	if _, err := d.kernel.SignalTree(t.PID, types.SIGRESUME); err != nil {
		return resp, err
	}
	d.wakeNodes(ctx, nodes, on, &resp)
	return resp, nil
}

// wakeNodes lets the suspended ones of nodes go on, and says of which that failed.
func (d runResumer) wakeNodes(ctx context.Context, nodes []run.Node, on *ipc.ResumeRequest, resp *ipc.ComposeUpResponse) {
	for i := range nodes {
		n := &nodes[i]
		if n.Phase != compose.Suspended {
			continue
		}
		info, ok := d.journal.Index().Get(n.UUID)
		if _, alive := d.running(n.UUID); alive || !ok || !info.Suspended {
			continue
		}
		_, err := resumer{d.Daemon}.continued(ctx, target{UUID: info.UUID, PID: info.PID, Info: &info}, onlyOn(on), nil)
		if err != nil && types.CodeOf(err) != types.ErrConflict {
			resp.Warnings = append(resp.Warnings, n.Key.String()+" stays suspended: "+err.Error())
		}
	}
}

// again lets a run go on that is only on disk.
func (d runResumer) again(ctx context.Context, t *target, req *ipc.ComposeResumeRequest, on *ipc.ResumeRequest) (ipc.ComposeUpResponse, error) {
	var none ipc.ComposeUpResponse
	a, err := reviver{d.Daemon}.open(ctx, t.UUID)
	if pid, alive := d.running(t.UUID); alive && types.CodeOf(err) == types.ErrConflict {
		return none, &types.SyscallError{Syscall: "Compose", Device: req.Target, PID: pid, Code: types.ErrConflict, Err: errors.New("it has just gone on by itself; see it with `rnix compose ps " + pid.String() + "`")}
	}
	if err != nil {
		return none, err
	}
	ready, redo, err := d.settle(a, req, on)
	if err != nil {
		a.close()
		return none, err
	}
	body, _ := ready.opts.Body.(*run.Run) // settle has made it
	hold := make(chan struct{})
	defer close(hold)                                                                 // the run looks for its nodes when all of them are there
	_, _, above := resumer{d.Daemon}.wakeAbove(ctx, a.was.ParentUUID, on, hold, true) // they wait for the run as before
	started, err := reviver{d.Daemon}.launch(ctx, ready, hold)
	if err != nil {
		return none, err
	}
	resp := ipc.ComposeUpResponse{PID: started.PID, UUID: started.UUID, Name: started.Name, Nodes: len(body.Spec().File.Agents), Redo: redo,
		Seq: started.Seq, Warnings: started.Warnings}
	_ = resumer{d.Daemon}.thawAbove(above, 0)
	for _, n := range body.Nodes() {
		if n.Phase != compose.Running {
			continue
		}
		info, ok := d.journal.Index().Get(n.UUID)
		if _, alive := d.running(n.UUID); alive || !ok || !info.Suspended {
			continue // the run finds it
		}
		if _, _, ok := (resumer{d.Daemon}).quietly(ctx, n.UUID, onlyOn(on), hold); !ok {
			resp.Warnings = append(resp.Warnings, n.Key.String()+" does not go on yet; see `rnix compose ps "+started.Name+"`")
		}
	}
	return resp, nil
}

// settle decides with what a run goes on, and what it does again.
func (d runResumer) settle(a *again, req *ipc.ComposeResumeRequest, on *ipc.ResumeRequest) (*ready, []string, error) {
	state, spec, err := composeState(a.state)
	if err != nil {
		return nil, nil, err
	}
	plan := spec.File.Plan()
	refuse := func(format string, args ...any) error {
		return types.Errorf(types.ErrConflict, "Compose", req.Target, format, args...)
	}
	ended := a.state.Phase == recovery.Ended
	var redo *compose.Redo // else the run does again what has failed, if it has ended
	var names []string
	switch {
	case req.Node != "":
		if !slices.Contains(plan.Order, req.Node) {
			return nil, nil, types.Errorf(types.ErrNotFound, "Compose", req.Target, "%w", state.MayRedo(req.Node, nil))
		}
		if err := state.MayRedo(req.Node, func(id types.UUID) bool { return ended && nodeOver(d.Daemon, id) }); err != nil {
			return nil, nil, refuse("%w", err)
		}
		redo, names = &compose.Redo{Node: req.Node}, plan.Below(req.Node)
	case ended && a.state.Exit != nil && a.state.Exit.Code == types.ExitOK:
		return nil, nil, refuse("it has ended, and all of it has succeeded; do a node again with --node NAME")
	case ended:
		for _, st := range state.Report() {
			if st.Phase == compose.Failed || st.Phase == compose.Skipped {
				names = append(names, st.Key.String())
			}
		}
	}
	with := *on // the nodes have budgets of their own
	with.Budget, with.BudgetUSD = req.Budget, req.BudgetUSD
	ready, err := reviver{d.Daemon}.settle(a, &with)
	if err != nil {
		return nil, nil, err
	}
	body, ok := ready.opts.Body.(*run.Run)
	if !ok {
		return nil, nil, refuse("it is no run of a workflow")
	}
	if redo != nil {
		body.Redo(*redo)
	}
	return ready, names, nil
}
