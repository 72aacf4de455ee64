package daemon

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/procview"
	"rnix/internal/recovery"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

// status describes a run with its nodes.
func (d composer) status(ctx context.Context, _ *ipc.Peer, req ipc.TargetRequest) (ipc.ComposeRun, error) {
	if err := d.settled(ctx); err != nil {
		return ipc.ComposeRun{}, err
	}
	t, err := d.find(req.Target)
	if err != nil {
		return ipc.ComposeRun{}, err
	}
	return d.describe(ctx, &t)
}

// plan returns the workflow of a run, with what has become of its nodes.
func (d composer) plan(ctx context.Context, _ *ipc.Peer, req ipc.TargetRequest) (ipc.ComposePlanResponse, error) {
	if err := d.settled(ctx); err != nil {
		return ipc.ComposePlanResponse{}, err
	}
	t, err := d.find(req.Target)
	if err != nil {
		return ipc.ComposePlanResponse{}, err
	}
	nodes, spec, err := d.nodes(ctx, &t)
	if err != nil {
		return ipc.ComposePlanResponse{}, err
	}
	resp := ipc.ComposePlanResponse{File: spec.File, States: map[string]string{}}
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
func (d composer) describe(ctx context.Context, t *target) (ipc.ComposeRun, error) {
	c := d.head(t)
	nodes, spec, err := d.nodes(ctx, t)
	if err != nil {
		return c, err
	}
	c.Path = spec.Path
	c.Nodes = make([]ipc.ComposeNode, len(nodes))
	for i := range nodes {
		c.Nodes[i] = d.node(&nodes[i])
		c.Purse = cmp.Or(c.Purse, d.purseOf(&nodes[i]))
	}
	count(&c)
	return c, nil
}

// purseOf returns the budget that a node waits for; nil = it waits for none.
func (d composer) purseOf(n *run.Node) *step.PurseWait {
	if n.Phase != compose.Suspended {
		return nil
	}
	info, _ := d.journal.Index().Get(n.UUID)
	return info.Purse
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
func (d composer) head(t *target) ipc.ComposeRun {
	var p ipc.Proc
	var result string
	usd := 0.0
	if t.Live != nil {
		p, result, usd = d.looks.Living(t.Live), t.Live.Result, t.Live.BudgetUSD.Float()
	} else {
		i := processes(d).whole(t.Info)
		p, result, usd = procview.Stored(i), i.Result, i.BudgetUSD
	}
	return ipc.ComposeRun{PID: p.PID, UUID: p.UUID, Name: p.Name, State: p.State, Wait: p.Wait, WaitUntil: p.WaitUntil, Intent: p.Intent,
		WorkDir: p.WorkDir, Budget: p.Budget, BudgetUSD: usd, ElapsedMs: p.ElapsedMs, CreatedAt: p.CreatedAt, Exit: p.Exit, Result: result,
		Counts: map[string]int{}, Nodes: []ipc.ComposeNode{}}
}

// nodes returns what has become of the nodes of a run: of one that lives it says so itself, else its
// history does.
func (d composer) nodes(ctx context.Context, t *target) ([]run.Node, run.Spec, error) {
	if t.Live != nil {
		if r, ok := d.foreground(t.PID); ok {
			return r.Nodes(), r.Spec(), nil
		}
	}
	state, spec, was, err := d.history(ctx, t.UUID)
	if err != nil {
		return nil, spec, err
	}
	report := state.Report()
	out := make([]run.Node, len(report))
	for i, st := range report {
		out[i].Status = st
		d.asItIs(&out[i], was.Phase == recovery.Ended)
	}
	return out, spec, nil
}

// history reads what the history of a run amounts to.
func (d composer) history(ctx context.Context, id types.UUID) (*compose.State, run.Spec, *recovery.State, error) {
	state, _, _, err := d.store.Read(ctx, id)
	if err != nil {
		return nil, run.Spec{}, nil, err
	}
	c, spec, err := composeState(state)
	return c, spec, state, err
}

// composeState returns what has become of the nodes of a run, as its history says.
func composeState(s *recovery.State) (*compose.State, run.Spec, error) {
	was, err := s.Was()
	if err != nil || was.Body == nil {
		return nil, run.Spec{}, types.Errorf(types.ErrStorage, "Compose", "", "the history does not say which workflow it ran: %w", err)
	}
	spec, err := run.ParseSpec(was.Body.Spec)
	if err != nil {
		return nil, spec, err
	}
	state, err := compose.NewState(spec.File.Plan(), spec.Rounds, s.Notes)
	if err != nil {
		return nil, spec, types.Errorf(types.ErrStorage, "Compose", was.UUID.String(), "%w", err)
	}
	return state, spec, nil
}

// nodeOver reports whether the process of a node has ended.
func nodeOver(d *Daemon, id types.UUID) bool {
	info, ok := d.journal.Index().Get(id)
	_, alive := d.running(id)
	return !alive && (!ok || info.Exit != nil && !info.Suspended)
}

// asItIs corrects what a run that is not alive has noted last of a node: its own history knows better. A node that was
// ended with its run goes on with it.
func (d composer) asItIs(n *run.Node, ended bool) {
	if n.Phase != compose.Running {
		return
	}
	if pid, ok := d.running(n.UUID); ok {
		n.PID = pid
		return
	}
	info, ok := d.journal.Index().Get(n.UUID)
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
func (d composer) node(n *run.Node) ipc.ComposeNode {
	c := ipc.ComposeNode{Name: n.Key.String(), Item: n.Item, State: string(n.Phase), Why: n.Why, Kind: string(n.Kind), Needs: n.Needs, Attempt: n.Attempt,
		Until: n.Until, PID: n.PID, UUID: n.UUID, ExitCode: n.Exit, TokensUsed: n.Tokens, CostUSD: n.CostUSD, Unpriced: n.Unpriced}
	if n.UUID == (types.UUID{}) {
		return c
	}
	if t, err := (worktrees(d)).treeOf(n.UUID); err == nil {
		c.Branch = t.Branch
	}
	if n.PID != 0 {
		if i, err := d.kernel.Info(n.PID); err == nil {
			c.Step, c.ElapsedMs = i.Progress.Step, i.Elapsed.Milliseconds()
			c.TokensUsed, c.CostUSD, c.Unpriced = n.Tokens+i.Progress.Tokens, n.CostUSD+i.Progress.CostUSD, n.Unpriced+i.Progress.Unpriced
			if c.Why = i.Wait; i.Paused {
				c.State = "paused"
			}
			return c
		}
	}
	if info, ok := d.journal.Index().Get(n.UUID); ok {
		c.PID, c.Step, c.ElapsedMs = info.PID, info.Step, procview.Elapsed(&info).Milliseconds()
		if !n.Phase.Final() && n.Phase != compose.Retrying {
			c.TokensUsed, c.CostUSD, c.Unpriced = n.Tokens+info.TokensUsed, n.CostUSD+info.CostUSD, n.Unpriced+info.Unpriced
		}
	}
	return c
}

// list lists runs, without their nodes.
func (d composer) list(ctx context.Context, _ *ipc.Peer, req ipc.ListRequest) (ipc.ComposeListResponse, error) {
	if req.Limit < 0 {
		return ipc.ComposeListResponse{}, types.Errorf(types.ErrInvalid, "compose_list", "", "limit %d is negative", req.Limit)
	}
	settledSoon(ctx, d.Daemon)
	resp := ipc.ComposeListResponse{Runs: []ipc.ComposeRun{}}
	seen := map[types.UUID]bool{}
	add := func(t target) {
		seen[t.UUID] = true
		c, err := d.describe(ctx, &t)
		if err != nil {
			c.Wait = err.Error()
		}
		c.Nodes, c.Result = []ipc.ComposeNode{}, ""
		resp.Runs = append(resp.Runs, c)
	}
	for _, i := range d.kernel.List() {
		if i.Kind == run.Kind {
			add(target{UUID: i.UUID, PID: i.PID, Live: &i})
		}
	}
	var stored []step.ProcInfo
	list := d.journal.Index().Open()
	if req.All {
		list = d.journal.Index().List()
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
		add(target{UUID: stored[i].UUID, PID: stored[i].PID, Info: &stored[i]})
	}
	slices.SortStableFunc(resp.Runs, func(a, b ipc.ComposeRun) int { return cmp.Compare(a.PID, b.PID) })
	return resp, nil
}

// down ends a run, or pauses it, and returns when nothing of it works any more.
func (d composer) down(ctx context.Context, peer *ipc.Peer, req ipc.ComposeDownRequest) (ipc.ComposeRun, error) {
	if err := d.settled(ctx); err != nil {
		return ipc.ComposeRun{}, err
	}
	t, err := d.find(req.Target)
	if err != nil {
		return ipc.ComposeRun{}, err
	}
	if t.Live != nil && t.Live.State < types.StateZombie {
		if err := d.mayTouch(peer, "Compose", t.PID); err != nil {
			return ipc.ComposeRun{}, err
		}
		if err := d.halt(ctx, &t, req.Pause); err != nil {
			return ipc.ComposeRun{}, err
		}
	}
	if t.Live == nil && t.Info.Suspended { // it would go on when its time has come, or with one of its nodes
		if owner, inside := d.agentOf(peer); inside {
			return ipc.ComposeRun{}, service.Outside("Compose", owner, "act on its own subtree only")
		}
		if req.Pause {
			err = runHolder{d}.hold(ctx, &t)
		} else {
			err = undertaker(d).dismiss(ctx, t.UUID, "terminated while it was suspended")
		}
		if err != nil {
			return ipc.ComposeRun{}, err
		}
	}
	if t, err = d.names.Resolve(t.UUID.String()); err != nil {
		return ipc.ComposeRun{}, err
	}
	return d.describe(ctx, &t)
}

// pausePatience is how long it is waited for nodes that were being started when a run was paused.
const pausePatience = 10 * time.Second

// stands waits until no node of a paused run works.
func (d composer) stands(ctx context.Context, t *target) error {
	ctx, cancel := context.WithTimeout(ctx, pausePatience)
	defer cancel()
	tick := time.NewTicker(5 * time.Millisecond)
	defer tick.Stop()
	works := func(n run.Node) bool {
		if n.Phase != compose.Running {
			return false
		}
		i, err := d.kernel.Info(n.PID)
		return n.PID == 0 || err == nil && i.State == types.StateRunning && !i.Paused
	}
	for {
		r, ok := d.foreground(t.PID)
		if !ok || !slices.ContainsFunc(r.Nodes(), works) {
			return nil
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			return types.Errorf(types.ErrTimeout, "Compose", t.Live.Name, "it is paused, and nodes that were being started are not yet")
		}
	}
}

// halt pauses or ends a run that lives.
func (d composer) halt(ctx context.Context, t *target, pause bool) error {
	if pause {
		if _, err := d.kernel.SignalTree(t.PID, types.SIGPAUSE); err != nil {
			if types.CodeOf(err) == types.ErrNotFound {
				return nil // it has ended meanwhile
			}
			return err
		}
		return d.stands(ctx, t)
	}
	if err := d.kernel.Signal(t.PID, types.SIGTERM); err != nil && types.CodeOf(err) != types.ErrNotFound {
		return err
	}
	if _, err := d.kernel.WaitInfo(ctx, t.PID); err != nil && types.CodeOf(err) != types.ErrNotFound {
		return err
	}
	state, _, _, err := d.history(ctx, t.UUID)
	if err != nil {
		return err
	}
	for _, id := range state.Live() { // one that somebody has resumed in this moment
		if pid, ok := d.running(id); ok {
			_, _ = d.kernel.SignalTree(pid, types.SIGKILL) // it may have ended
			if _, err := d.kernel.WaitInfo(ctx, pid); err != nil && types.CodeOf(err) != types.ErrNotFound {
				return err
			}
		}
	}
	return nil
}
