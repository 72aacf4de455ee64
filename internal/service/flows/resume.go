package flows

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// resumer resumes runs.
type resumer struct {
	runs   *runs
	kernel Kernel
	finder Finder
	starts Starts
	stored Stored
}

// resume lets a run go on: one that is paused or suspended as it stands, and one that has ended with a
// round of its own for what failed, or for one node and those below it. A person asks for it, so paused
// nodes and those that wait for a time go on too.
func (s resumer) resume(ctx context.Context, peer *ipc.Peer, req ipc.ComposeResumeRequest) (ipc.ComposeUpResponse, error) {
	var none ipc.ComposeUpResponse
	if owner, inside := s.finder.AgentOf(peer); inside {
		return none, service.Outside("Compose", owner, "not resume runs")
	}
	on := ipc.ResumeRequest{Target: req.Target, Env: req.Env, OnInDoubt: req.OnInDoubt, TimeoutMs: req.TimeoutMs, Sandbox: req.Sandbox, Net: req.Net, Tighter: true, TrustProject: req.TrustProject}
	if err := s.stored.CheckResume(&on); err != nil {
		return none, err
	}
	if req.Budget != nil && *req.Budget < 0 || req.BudgetUSD != nil && !(*req.BudgetUSD >= 0 && *req.BudgetUSD <= 1e9) {
		return none, types.Errorf(types.ErrInvalid, "Compose", req.Target, "a budget is a number of at least 0; 0 means unlimited")
	}
	if err := s.finder.Settled(ctx); err != nil {
		return none, err
	}
	t, err := s.meant(ctx, &req)
	if err != nil {
		return none, err
	}
	if t.Place() == service.Runs {
		return s.thawed(ctx, &t, &req, &on)
	}
	if err := s.runs.left(ctx, &t); err != nil {
		return none, err
	}
	return s.again(ctx, &t, &req, &on)
}

// thawed lets a run go on that lives: its pause ends, and so does the wait of its suspended nodes.
func (s resumer) thawed(ctx context.Context, t *service.Target, req *ipc.ComposeResumeRequest, on *ipc.ResumeRequest) (ipc.ComposeUpResponse, error) {
	busy := func(text string) error {
		return &types.SyscallError{Syscall: "Compose", Device: req.Target, PID: t.PID, Code: types.ErrConflict, Err: errors.New(text)}
	}
	resp := ipc.ComposeUpResponse{PID: t.PID, UUID: t.UUID, Name: t.Live.Name, Seq: s.starts.Seq()}
	switch {
	case req.Node != "":
		return resp, busy("it is running; wait for its end, or end it with `rnix compose down " + t.Live.Name + "`, and do the node again then")
	case req.TimeoutMs != nil:
		return resp, busy("it is running; end it with `rnix compose down " + t.Live.Name + "`, and give it another time limit then")
	case req.Sandbox != "" || req.Net != "":
		return resp, busy("it is running; end it with `rnix compose down " + t.Live.Name + "`, and tighten its sandbox then")
	case req.Budget != nil || req.BudgetUSD != nil:
		return resp, busy("it is running; give it more with `rnix budget add " + t.Live.Name + " --tokens N` (or --usd X)")
	}
	body, ok := s.runs.body(t.PID)
	if !ok {
		return resp, busy("it is ending; try again in a moment")
	}
	nodes := body.Nodes()
	resp.Nodes = len(body.Spec().File.Agents)
	asleep, paused := false, t.Live.Paused
	for i := range nodes {
		if pid := nodes[i].PID; pid != 0 {
			if in, err := s.kernel.Info(pid); err == nil {
				paused = paused || in.Paused
			}
		}
		asleep = asleep || nodes[i].Phase == compose.Suspended
	}
	if !paused && !asleep {
		if pid, ok := s.stored.Automatic(t.UUID); ok && pid == t.PID { // it was asked for, and the daemon was quicker
			resp.Warnings = append(resp.Warnings, "it was resumed automatically when the daemon started")
			return resp, nil
		}
		return resp, busy("it is running already; see it with `rnix compose ps " + t.Live.Name + "`")
	}
	err := s.letGo(ctx, nodes, on, &resp)
	return resp, err
}

// letGo ends the pause of a run that lives, and the wait of the suspended ones of its nodes; it says of which that failed. STORAGE: they go on, and that would
// not hold over the end of the daemon.
func (s resumer) letGo(ctx context.Context, nodes []run.Node, on *ipc.ResumeRequest, resp *ipc.ComposeUpResponse) error {
	_, lost := s.kernel.SignalTree(resp.PID, types.SIGRESUME)
	if lost != nil && types.CodeOf(lost) != types.ErrStorage {
		return lost
	}
	for i := range nodes {
		n := &nodes[i]
		if n.Phase != compose.Suspended || !s.runs.suspended(n.UUID) {
			continue
		}
		switch pid, err := s.stored.Resume(ctx, n.UUID, on); {
		case pid != 0:
			lost = cmp.Or(lost, err)
		case err != nil && types.CodeOf(err) != types.ErrConflict:
			resp.Warnings = append(resp.Warnings, n.Key.String()+" stays suspended: "+err.Error())
		}
	}
	return lost
}

// again resumes a run that is only on disk.
func (s resumer) again(ctx context.Context, t *service.Target, req *ipc.ComposeResumeRequest, on *ipc.ResumeRequest) (ipc.ComposeUpResponse, error) {
	r := &revival{runs: s.runs, req: req, on: on}
	started, err := s.stored.ResumeRun(ctx, t.UUID, on, r)
	if pid, alive := s.runs.running(t.UUID); alive && !r.decided && types.CodeOf(err) == types.ErrConflict {
		err = &types.SyscallError{Syscall: "Compose", Device: req.Target, PID: pid, Code: types.ErrConflict, Err: errors.New("it has just been resumed automatically; see it with `rnix compose ps " + pid.String() + "`")}
	}
	if err != nil {
		return ipc.ComposeUpResponse{}, err
	}
	resp := ipc.ComposeUpResponse{PID: started.PID, UUID: started.UUID, Name: started.Name, Nodes: len(r.body.Spec().File.Agents), Redo: r.names,
		Seq: started.Seq, Warnings: started.Warnings}
	for _, node := range r.behind {
		resp.Warnings = append(resp.Warnings, node+" is not resumed yet; see `rnix compose ps "+started.Name+"`")
	}
	return resp, nil
}

// revival decides with what a run on disk is resumed, and what it does again.
type revival struct {
	runs *runs
	req  *ipc.ComposeResumeRequest
	on   *ipc.ResumeRequest

	decided bool
	redo    *compose.Redo // nil = what has failed, if the run has ended
	names   []string      // of the nodes that it does again
	body    *run.Run
	behind  []string // nodes that could not be resumed with it
}

// Decide implements Revival.
func (r *revival) Decide(s *recovery.State) (*ipc.ResumeRequest, error) {
	r.decided, r.redo, r.names = true, nil, nil
	state, spec, err := stateOf(s)
	if err != nil {
		return nil, err
	}
	plan, ended := spec.File.Plan(), s.Phase == recovery.Ended
	switch {
	case r.req.Node != "":
		if !slices.Contains(plan.Order, r.req.Node) {
			return nil, types.Errorf(types.ErrNotFound, "Compose", r.req.Target, "%w", state.MayRedo(r.req.Node, nil))
		}
		if err := state.MayRedo(r.req.Node, func(id types.UUID) bool { return ended && r.runs.over(id) }); err != nil {
			return nil, r.refusal("%w", err)
		}
		r.redo, r.names = &compose.Redo{Node: r.req.Node}, plan.Below(r.req.Node)
	case ended && s.Exit != nil && s.Exit.Code == types.ExitOK:
		return nil, r.refusal("it has ended, and all of it has succeeded; do a node again with --node NAME")
	case ended:
		for _, st := range state.Report() {
			if st.Phase == compose.Failed || st.Phase == compose.Skipped {
				r.names = append(r.names, st.Key.String())
			}
		}
	}
	with := *r.on // the nodes have budgets of their own
	with.Budget, with.BudgetUSD = r.req.Budget, r.req.BudgetUSD
	return &with, nil
}

// Begin implements Revival.
func (r *revival) Begin(b kernel.Body) error {
	body, ok := b.(*run.Run)
	if !ok {
		return r.refusal("it is no run of a workflow")
	}
	if r.body = body; r.redo != nil {
		body.Redo(*r.redo)
	}
	return nil
}

// Begun implements Revival: the nodes that were suspended with the run go on with it.
func (r *revival) Begun(wake func(types.UUID) bool) {
	for _, n := range r.body.Nodes() {
		if n.Phase == compose.Running && r.runs.suspended(n.UUID) && !wake(n.UUID) { // the run finds the others
			r.behind = append(r.behind, n.Key.String())
		}
	}
}

func (r *revival) refusal(format string, args ...any) error {
	return types.Errorf(types.ErrConflict, "Compose", r.req.Target, format, args...)
}
