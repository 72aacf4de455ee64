package flows

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// runs finds and describes runs of workflows, wherever they lie.
type runs struct {
	kernel Kernel
	index  Index
	finder Finder
	looks  Looks
	stored Stored
}

// find finds a run: the process that is meant, or of several runs of one name the one that lives, or else
// the latest.
func (r *runs) find(text string) (service.Target, error) {
	t, err := r.finder.ResolveKind(text, run.Kind)
	if types.CodeOf(err) == types.ErrAmbiguous {
		var last *step.ProcInfo
		stored, living := r.index.List(), 0
		for i := range stored { // the latest comes last
			if s := &stored[i]; s.Kind == run.Kind && s.Name == text {
				last = s
				if _, alive := r.running(s.UUID); alive {
					living++
				}
			}
		}
		if last != nil && living == 0 { // else several live, and one must be named
			t, err = r.finder.Resolve(last.UUID.String())
		}
	}
	if err != nil {
		return t, err
	}
	if kind := t.Kind(); kind != run.Kind {
		return t, &types.SyscallError{Syscall: "Compose", Device: text, PID: t.PID, Code: types.ErrInvalid, Err: errors.New("it is no run of a workflow; `rnix compose ps -a` lists them")}
	}
	return t, nil
}

// running returns the PID of a history that is running.
func (r *runs) running(id types.UUID) (types.PID, bool) {
	i, ok := r.kernel.InfoOf(id)
	return i.PID, ok
}

// body returns the body of a run that is in the kernel's table.
func (r *runs) body(pid types.PID) (*run.Run, bool) {
	b, ok := r.kernel.BodyOf(pid).(*run.Run)
	return b, ok
}

// status describes a run with its nodes.
func (r *runs) status(ctx context.Context, text string) (ipc.ComposeRun, error) {
	if err := r.finder.Settled(ctx); err != nil {
		return ipc.ComposeRun{}, err
	}
	t, err := r.find(text)
	if err != nil {
		return ipc.ComposeRun{}, err
	}
	return r.describe(ctx, &t)
}

// showPlan returns the workflow of a run, with what has become of its nodes.
func (r *runs) showPlan(ctx context.Context, _ *ipc.Peer, req ipc.TargetRequest) (ipc.ComposePlanResponse, error) {
	if err := r.finder.Settled(ctx); err != nil {
		return ipc.ComposePlanResponse{}, err
	}
	t, err := r.find(req.Target)
	if err != nil {
		return ipc.ComposePlanResponse{}, err
	}
	nodes, spec, err := r.nodes(ctx, &t)
	if err != nil {
		return ipc.ComposePlanResponse{}, err
	}
	resp := ipc.ComposePlanResponse{File: wireWorkflow(spec.File), States: map[string]string{}}
	counts := map[string]map[string]int{}
	for i := range nodes {
		n := &nodes[i]
		if n.Key.Index < 0 {
			resp.States[n.Key.Node] = string(n.Phase)
			continue
		}
		if counts[n.Key.Node] == nil {
			counts[n.Key.Node] = map[string]int{}
		}
		counts[n.Key.Node][string(n.Phase)]++
	}
	for node, by := range counts {
		var parts []string
		for _, state := range slices.Sorted(maps.Keys(by)) {
			parts = append(parts, fmt.Sprintf("%d %s", by[state], state))
		}
		resp.States[node] = strings.Join(parts, ", ")
	}
	return resp, nil
}

// describe returns everything that is known of a run.
func (r *runs) describe(ctx context.Context, t *service.Target) (ipc.ComposeRun, error) {
	c := r.head(t)
	nodes, spec, err := r.nodes(ctx, t)
	if err != nil {
		return c, err
	}
	c.Path = spec.Path
	c.Nodes = make([]ipc.ComposeNode, len(nodes))
	for i := range nodes {
		c.Nodes[i] = r.node(&nodes[i])
		c.Purse = cmp.Or(c.Purse, r.purseOf(&nodes[i]))
	}
	count(&c)
	return c, nil
}

// purseOf returns the budget that a node waits for; nil = it waits for none.
func (r *runs) purseOf(n *run.Node) *ipc.BudgetWait {
	if n.Phase != compose.Suspended {
		return nil
	}
	info, _ := r.index.Get(n.UUID)
	return (*ipc.BudgetWait)(info.Purse)
}

// count sums up what the nodes of a run have come to.
func count(c *ipc.ComposeRun) {
	c.Counts, c.TokensUsed, c.CostUSD, c.Unpriced = map[string]int{}, 0, 0, 0
	for i := range c.Nodes {
		c.Counts[c.Nodes[i].State]++
		c.TokensUsed += c.Nodes[i].TokensUsed
		c.CostUSD += c.Nodes[i].CostUSD
		c.Unpriced += c.Nodes[i].Unpriced
	}
}

// head describes a run without its nodes.
func (r *runs) head(t *service.Target) ipc.ComposeRun {
	var p ipc.Proc
	var result string
	usd := 0.0
	if t.Live != nil {
		p, result, usd = r.looks.Living(t.Live), t.Live.Result, t.Live.BudgetUSD
	} else {
		i := r.looks.Whole(t.Info)
		p, result, usd = procview.Stored(i), i.Result, i.BudgetUSD
	}
	return ipc.ComposeRun{PID: p.PID, UUID: p.UUID, Name: p.Name, State: p.State, Wait: p.Wait, WaitUntil: p.WaitUntil, Intent: p.Intent,
		WorkDir: p.WorkDir, Budget: p.ContextBudget, BudgetUSD: usd, ElapsedMs: p.ElapsedMs, CreatedAt: p.CreatedAt, Exit: p.Exit, Result: result,
		Counts: map[string]int{}, Nodes: []ipc.ComposeNode{}}
}

// nodes returns what has become of the nodes of a run: of one that lives it says so itself, else its
// history does.
func (r *runs) nodes(ctx context.Context, t *service.Target) ([]run.Node, run.Spec, error) {
	if t.Live != nil {
		if b, ok := r.body(t.PID); ok {
			return b.Nodes(), b.Spec(), nil
		}
	}
	state, spec, was, err := r.history(ctx, t.UUID)
	if err != nil {
		return nil, spec, err
	}
	report := state.Report()
	out := make([]run.Node, len(report))
	for i, st := range report {
		out[i].Status = st
		r.asItIs(&out[i], was.Phase == recovery.Ended)
	}
	return out, spec, nil
}

// history reads what the history of a run amounts to.
func (r *runs) history(ctx context.Context, id types.UUID) (*compose.State, run.Spec, *recovery.State, error) {
	state, err := r.stored.Read(ctx, id)
	if err != nil {
		return nil, run.Spec{}, nil, err
	}
	c, spec, err := stateOf(state)
	return c, spec, state, err
}

// left waits until a run that has ended or was suspended is only on disk.
func (r *runs) left(ctx context.Context, t *service.Target) error {
	if t.Live == nil {
		return nil
	}
	if _, err := r.kernel.WaitInfo(ctx, t.PID); err != nil && types.CodeOf(err) != types.ErrNotFound {
		return err
	}
	return nil
}

// suspended reports whether a history is suspended on disk.
func (r *runs) suspended(id types.UUID) bool {
	info, ok := r.index.Get(id)
	_, alive := r.running(id)
	return ok && info.Suspended && !alive
}

// over reports whether the process of a node has ended.
func (r *runs) over(id types.UUID) bool {
	info, ok := r.index.Get(id)
	_, alive := r.running(id)
	return !alive && (!ok || info.Exit != nil && !info.Suspended)
}

// asItIs corrects what a run that is not alive has noted last of a node: its own history knows better. A node that was
// ended with its run goes on with it.
func (r *runs) asItIs(n *run.Node, ended bool) {
	if n.Phase != compose.Running {
		return
	}
	if pid, ok := r.running(n.UUID); ok {
		n.PID = pid
		return
	}
	info, ok := r.index.Get(n.UUID)
	switch {
	case !ok:
		n.Phase, n.Why = compose.Waiting, "it had not begun when the run stopped"
	case info.Exit != nil && !info.Suspended:
		n.Phase, n.Kind = compose.Succeeded, run.KindOf(*info.Exit)
		n.Tokens, n.CostUSD, n.Unpriced = n.Tokens+info.TokensUsed, n.CostUSD+info.CostUSD, n.Unpriced+info.Unpriced
		if n.Kind != "" {
			n.Phase, n.Why = compose.Failed, info.Exit.Reason
		}
		if ended && (n.Kind == compose.Cancelled || info.Exit.Reason == types.ReasonCancelledPaused) {
			n.Phase, n.Kind, n.Why = compose.Stopped, "", "it was ended with its run"
		}
	default:
		n.Phase, n.Why, n.Until = compose.Suspended, info.SuspendReason, info.WakeAt
	}
}

// node is a node on the wire, with what its process has come to.
func (r *runs) node(n *run.Node) ipc.ComposeNode {
	c := ipc.ComposeNode{Name: n.Key.String(), Item: n.Item, State: string(n.Phase), Why: n.Why, Kind: string(n.Kind), Files: n.Files, Needs: n.Needs, Attempt: n.Attempt,
		Until: n.Until, PID: n.PID, UUID: n.UUID, ExitCode: n.Exit, TokensUsed: n.Tokens, CostUSD: n.CostUSD, Unpriced: n.Unpriced}
	if n.UUID == (types.UUID{}) {
		return c
	}
	c.Branch = r.looks.Branch(n.UUID)
	if n.PID != 0 {
		if i, err := r.kernel.Info(n.PID); err == nil {
			c.Step, c.ElapsedMs = i.Step, i.Elapsed.Milliseconds()
			c.TokensUsed, c.CostUSD, c.Unpriced = n.Tokens+i.TokensUsed, n.CostUSD+i.CostUSD, n.Unpriced+i.Unpriced
			if c.Why = i.Wait; i.Paused {
				c.State = "paused"
			}
			return c
		}
	}
	if info, ok := r.index.Get(n.UUID); ok {
		c.PID, c.Step, c.ElapsedMs = info.PID, info.Step, procview.Elapsed(&info).Milliseconds()
		if !n.Phase.Final() && n.Phase != compose.Retrying {
			c.TokensUsed, c.CostUSD, c.Unpriced = n.Tokens+info.TokensUsed, n.CostUSD+info.CostUSD, n.Unpriced+info.Unpriced
		}
	}
	return c
}

// list lists runs, without their nodes.
func (r *runs) list(ctx context.Context, _ *ipc.Peer, req ipc.ListRequest) (ipc.ComposeListResponse, error) {
	if req.Limit < 0 {
		return ipc.ComposeListResponse{}, types.Errorf(types.ErrInvalid, "compose_list", "", "limit %d is negative", req.Limit)
	}
	if len(req.Labels) > 0 {
		return ipc.ComposeListResponse{}, types.Errorf(types.ErrInvalid, "compose_list", "", "runs of workflows have no labels; select processes with list_procs")
	}
	r.finder.SettledSoon(ctx)
	resp := ipc.ComposeListResponse{Runs: []ipc.ComposeRun{}}
	seen := map[types.UUID]bool{}
	add := func(t service.Target) {
		seen[t.UUID] = true
		c, err := r.describe(ctx, &t)
		if err != nil {
			c.Wait = err.Error()
		}
		c.Nodes, c.Result = []ipc.ComposeNode{}, ""
		resp.Runs = append(resp.Runs, c)
	}
	for _, i := range r.kernel.List() {
		if i.Kind == run.Kind {
			add(service.Target{UUID: i.UUID, PID: i.PID, Live: &i})
		}
	}
	var stored []step.ProcInfo
	list := r.index.Open()
	if req.All {
		list = r.index.List()
	}
	for _, s := range list {
		if s.Kind == run.Kind && !seen[s.UUID] {
			stored = append(stored, s)
		}
	}
	if req.Limit > 0 && len(stored) > req.Limit { // the newest are last
		stored = stored[len(stored)-req.Limit:]
	}
	for i := range stored {
		add(service.Target{UUID: stored[i].UUID, PID: stored[i].PID, Info: &stored[i]})
	}
	slices.SortStableFunc(resp.Runs, func(a, b ipc.ComposeRun) int { return cmp.Compare(a.PID, b.PID) })
	return resp, nil
}
