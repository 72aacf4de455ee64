package kernel

import (
	"context"
	"errors"
	"slices"
	"strings"

	"rnix/agent"
	"rnix/kernel/internal/actions"
	"rnix/types"
)

// The rights of agents over others; see package actions.
const (
	spawnRight  = actions.SpawnPath
	signalRight = actions.SignalPath
)

// actingFamily is an acting process with those above and below it.
type actingFamily acting

var _ actions.Family = (*actingFamily)(nil)

// Start implements actions.Family.
func (c *actingFamily) Start(ctx context.Context, id types.UUID, input string, in *actions.SpawnInput, bad error) (types.PID, error) {
	call, args := c.tracer.call(c.p, "Spawn", ""), c.tracer.brief(input)
	if in.Worktree {
		call.begins(args) // to make one of a large repository takes long
	}
	pid, err := types.PID(0), bad
	if bad == nil {
		pid, err = c.start(ctx, id, in)
	}
	call.ends(args, "PID "+pid.String(), err)
	return pid, err
}

func (c *actingFamily) start(ctx context.Context, id types.UUID, in *actions.SpawnInput) (types.PID, error) {
	ag, opts, err := c.settle(id, in)
	if err != nil {
		return 0, err
	}
	undo := func() {}
	if in.Worktree {
		if undo, err = c.workspace.Plant(ctx, c.p, &opts); err != nil {
			return 0, err
		}
	}
	if in.Background {
		c.p.kids.add(id, 0)
	} else {
		c.p.kids.await(id) // before it can end
	}
	child, err := c.sys.spawn(ctx, in.Intent, ag, opts)
	if err == nil {
		return child.PID, nil
	}
	c.p.kids.forget(id)
	undo()
	if errors.Is(err, errStopping) || errors.Is(context.Cause(c.p.ctx), errStopping) {
		return 0, (*acting)(c).CutOff()
	}
	return 0, err
}

// settle makes the options of a child out of what its parent asks for and has.
func (c *actingFamily) settle(id types.UUID, in *actions.SpawnInput) (ag *agent.Agent, opts SpawnOpts, err error) {
	if err := permitted(c.p, "Spawn", spawnRight, "start agents"); err != nil {
		return nil, opts, err
	}
	if err := CheckName(in.Name); err != nil {
		return nil, opts, err
	}
	var allow []string
	if in.Allow != nil {
		allow = append([]string{}, *in.Allow...) // empty = nothing
	}
	if err := c.sys.CheckDevices(allow, in.Deny); err != nil {
		return nil, opts, err
	}
	if ag, opts, err = c.catalog.LoadAgent(c.p, in.Agent); err != nil {
		return nil, opts, err
	}
	inherit(&opts, c.p, ag)
	opts.UUID, opts.Name = id, orDefault(in.Name, opts.Name)
	opts.MaxSteps = least(opts.MaxSteps, ag.MaxSteps, in.MaxSteps)
	opts.ContextBudget = least(opts.ContextBudget, ag.ContextBudget, in.Budget)
	if allow != nil {
		opts.AllowedDevices = allow
	}
	opts.DeniedDevices = append(opts.DeniedDevices, in.Deny...)
	return ag, opts, nil
}

// Begun implements actions.Family.
func (c *actingFamily) Begun(id types.UUID) (actions.View, error) {
	if p, ok := c.table.byID(id); ok {
		return actions.View{PID: p.PID, ID: p.UUID, Left: p.left}, nil
	}
	if c.lifecycle == Lifecycle(NoLifecycle{}) { // nobody knows whether it was started
		return actions.View{}, types.Errorf(types.ErrInDoubt, "Spawn", id.String(), "no histories are kept, which would tell whether it was started")
	}
	s, err := c.lifecycle.Stored(id)
	if err != nil {
		return actions.View{}, err
	}
	return actions.View{PID: s.PID, ID: s.UUID, Exit: s.Exit, Result: s.Result, Waits: s.Suspended, Asleep: s.SuspendReason}, nil
}

// Note implements actions.Family.
func (c *actingFamily) Note(k actions.Child) { c.p.kids.add(k.ID, k.PID) }

// Await implements actions.Family.
func (c *actingFamily) Await(ctx context.Context, k actions.Child) (actions.View, error) {
	c.p.kids.await(k.ID)
	end, err := c.sys.By(c.p.PID).WaitInfo(ctx, k.PID)
	switch {
	case err == nil:
		c.p.kids.awaited(k.ID)
		return viewOf(&end), nil
	case errors.Is(context.Cause(c.p.ctx), errStopping):
		return actions.View{}, (*acting)(c).CutOff()
	}
	c.p.kids.add(k.ID, k.PID)
	c.p.kids.awaited(k.ID)
	c.children.missed(c.p, kid{id: k.ID, pid: k.PID}) // it may have ended meanwhile, and has told nobody
	return actions.View{}, err
}

// Children implements actions.Family.
func (c *actingFamily) Children(pids []types.PID) ([]actions.Child, error) {
	kids, err := c.children.awaited(c.p, pids)
	out := make([]actions.Child, len(kids))
	for i, k := range kids {
		out[i] = actions.Child{ID: k.id, PID: k.pid}
	}
	return out, err
}

// Fate implements actions.Family.
func (c *actingFamily) Fate(k actions.Child) (actions.View, bool) {
	i, live, ok := c.children.fate(kid{id: k.ID, pid: k.PID})
	v := viewOf(&i)
	if live != nil {
		v.Left = live.left
	}
	return v, ok
}

// Reap implements actions.Family.
func (c *actingFamily) Reap(id types.UUID) {
	if p, ok := c.table.byID(id); ok {
		c.reaper.reap(p)
	}
}

// Planted implements actions.Family.
func (c *actingFamily) Planted(id types.UUID) string {
	dir, text := c.workspace.Planted(id)
	if dir != "" {
		c.p.mu.Lock()
		defer c.p.mu.Unlock()
		if !slices.Contains(c.p.trees, dir) {
			c.p.trees = append(slices.Clip(c.p.trees), dir)
		}
	}
	return text
}

// Failed implements actions.Family.
func (c *actingFamily) Failed(what string) {
	c.p.mu.Lock()
	defer c.p.mu.Unlock()
	c.p.failedChildren = append(c.p.failedChildren, what)
}

// Below implements actions.Family.
func (c *actingFamily) Below() (out []actions.View, err error) {
	below, err := c.sys.Subtree(c.p.PID)
	if err != nil {
		return nil, err
	}
	seen := map[types.UUID]bool{}
	add := func(i *Info) {
		seen[i.UUID] = true
		v := viewOf(i)
		first, _, _ := strings.Cut(strings.TrimSpace(i.Intent), "\n")
		v.Intent = excerpt([]byte(first))
		out = append(out, v)
	}
	for _, pid := range below {
		if i, ok := c.table.known(pid); ok {
			add(&i)
		}
	}
	for _, k := range c.p.kids.all() {
		if i, _, ok := c.children.fate(k); ok && !seen[k.id] && i.Suspended {
			i.PPID = c.p.PID
			add(&i)
		}
	}
	return out, nil
}

// Signal implements actions.Family.
func (c *actingFamily) Signal(pid types.PID, sig types.Signal, tree bool) (n int, err error) {
	if err := permitted(c.p, "Signal", signalRight, "send signals"); err != nil {
		return 0, err
	}
	below, err := c.sys.Subtree(c.p.PID)
	if err != nil {
		return 0, err
	}
	if pid == c.p.PID || !slices.Contains(below, pid) {
		code, why := c.notBelow(pid)
		return 0, &types.SyscallError{Syscall: "Signal", PID: pid, Code: code, Err: why}
	}
	if tree {
		return c.signals.tree(authority{p: c.p}, pid, sig)
	}
	return 1, c.signals.send(authority{p: c.p}, pid, sig)
}

// notBelow says why a process cannot be signalled that does not run below this one.
func (c *actingFamily) notBelow(pid types.PID) (types.ErrCode, error) {
	k, ok := c.children.childOf(c.p, c.p.kids.all(), pid)
	if !ok {
		return types.ErrPermission, errors.New("it is not below you; ps lists those that are")
	}
	if i, _, known := c.children.fate(k); known && i.Parked.Waits() {
		return types.ErrNotFound, errors.New("it is suspended, and does nothing: " + i.Parked.SuspendReason)
	}
	return types.ErrNotFound, errors.New("it has ended")
}

// viewOf is a process as its relatives see it.
func viewOf(i *Info) actions.View {
	return actions.View{
		PID: i.PID, PPID: i.PPID, ID: i.UUID, Name: i.Name, Intent: i.Intent, State: i.StateName(), Step: i.Step, Tokens: i.TokensUsed, Wait: i.Wait,
		Exit: i.Exit, Result: i.Result, Asleep: i.Parked.SuspendReason, Waits: i.Parked.Waits(),
	}
}

// inherit gives a child what it has from its parent: a name, and the model if it has none of its own.
// That it has at most the tokens that the parent has left is settled for every child.
func inherit(o *SpawnOpts, parent *Process, ag *agent.Agent) {
	o.ParentPID, o.Name = parent.PID, childName(parent, nextChild(parent))
	if o.Provider == "" {
		from := &parent.opts
		o.Provider, o.Model, o.FallbackProvider, o.FallbackModel = from.Provider, from.Model, from.FallbackProvider, from.FallbackModel
		o.Effort = orDefault(orDefault(o.Effort, ag.Models.ReasoningEffort), from.Effort)
	}
}

// least returns the smallest of several limits, of which nil and 0 are none. What is not said at all
// stays nil.
func least(limits ...*int) (out *int) {
	for _, n := range limits {
		if n != nil && (out == nil || *n > 0 && (*out <= 0 || *n < *out)) {
			out = n
		}
	}
	return out
}

// nextChild numbers the children that a process's model starts.
func nextChild(p *Process) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.spawned++
	return p.spawned
}

// readRoots are the directories that a process may read besides its own: those that it was given, and the work trees of
// its children.
func readRoots(p *Process) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clip(p.ReadRoots), p.trees...)
}
