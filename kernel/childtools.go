package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"rnix/agent"
	"rnix/internal/recovery"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// offers reports whether a process is offered one of the kernel's own actions.
func (at *agentActions) offers(p *Process, kind loop.Kind) bool {
	spawns := p.Rights.Permits(spawnRight) && p.depth < at.limits.Depth
	switch kind {
	case loop.Specialize:
		return at.catalog != Catalog(NoCatalog{})
	case loop.Spawn, loop.Wait:
		return spawns
	case loop.Signal:
		return spawns && p.Rights.Permits(signalRight)
	case loop.Send, loop.Recv:
		return p.Rights.Permits(SendRight)
	case loop.Ps:
		return spawns || p.Rights.Permits(SendRight)
	}
	return true
}

// signalRight is the path that must be allowed for an agent to signal its descendants. No device is there.
const signalRight = "/sys/signal"

// ownPaths are where the kernel's own actions are, for records. No devices are there.
var ownPaths = map[loop.Kind]string{
	loop.Spawn: spawnRight, loop.Wait: recovery.WaitPath, loop.Send: SendRight, loop.Recv: "/sys/recv", loop.Signal: signalRight,
}

// ownEffects are what they do to the world. A message that is sent again has the key of the first, a signal that
// is sent again does nothing more, and what recv has taken and not answered is still to be delivered.
var ownEffects = map[loop.Kind]vfs.Effect{
	loop.Spawn: vfs.EffectExternal, loop.Wait: vfs.EffectNone, loop.Send: vfs.EffectIdempotent, loop.Recv: vfs.EffectIdempotent, loop.Signal: vfs.EffectIdempotent,
}

// spawnInput is the input of the spawn action.
type spawnInput struct {
	Intent     string    `json:"intent"`
	Agent      string    `json:"agent"`
	Name       string    `json:"name"`
	MaxSteps   *int      `json:"max_steps"`
	Budget     *int      `json:"budget"`
	Allow      *[]string `json:"allow"`
	Deny       []string  `json:"deny"`
	Background bool      `json:"background"`
	Worktree   bool      `json:"worktree"` // it works in a git work tree of its own
}

// inputOf decodes the input of one of the kernel's own actions. A field that it does not have is INVALID.
func inputOf(a *loop.Action, in any) error {
	d := json.NewDecoder(bytes.NewReader(a.Call.Input))
	d.DisallowUnknownFields()
	if err := d.Decode(in); err != nil {
		return types.Errorf(types.ErrInvalid, "Tool", a.Call.Name, "%w", err)
	}
	return nil
}

// check refuses what cannot be meant.
func (in *spawnInput) check(k system) error {
	bad := func(format string, args ...any) error {
		return types.Errorf(types.ErrInvalid, "Spawn", "", format, args...)
	}
	switch {
	case in.MaxSteps != nil && *in.MaxSteps < 1:
		return bad("max_steps is %d; give at least 1, or leave it out", *in.MaxSteps)
	case in.Budget != nil && *in.Budget < 1:
		return bad("budget is %d; give at least 1, or leave it out", *in.Budget)
	}
	if err := CheckName(in.Name); err != nil {
		return err
	}
	var allow []string
	if in.Allow != nil {
		allow = *in.Allow
	}
	return k.CheckDevices(allow, in.Deny)
}

// spawnChild starts a child process and waits for it, unless it is to run in the background. When ctx ends first,
// the child lives on: it is given to PID 0 when its parent is reaped, as Unix does.
func (at *agentActions) spawnChild(ctx context.Context, p *Process, a *loop.Action) (string, error) {
	var in spawnInput
	var pid types.PID
	err := inputOf(a, &in)
	c, args := at.tracer.call(p, "Spawn", ""), at.tracer.brief(string(a.Call.Input))
	if in.Worktree {
		c.begins(args) // to make one of a large repository takes long
	}
	if err == nil {
		pid, err = at.startChild(ctx, p, a, &in)
	}
	c.ends(args, "PID "+pid.String(), err)
	switch {
	case err != nil:
		return "", err
	case in.Background:
		return at.inBackground(p, a.Child, pid), nil
	}
	return at.awaitChild(ctx, p, a.Child, pid)
}

// startChild starts a child process for an agent that asks for it.
func (at *agentActions) startChild(ctx context.Context, p *Process, a *loop.Action, in *spawnInput) (types.PID, error) {
	if err := permitted(p, "Spawn", spawnRight, "start agents"); err != nil {
		return 0, err
	}
	if err := in.check(at.sys); err != nil {
		return 0, err
	}
	ag, opts, err := at.catalog.LoadAgent(p, in.Agent)
	if err != nil {
		return 0, err
	}
	inherit(&opts, p, ag)
	opts.UUID, opts.Name = a.Child, orDefault(in.Name, opts.Name)
	opts.MaxSteps = least(opts.MaxSteps, ag.MaxSteps, in.MaxSteps)
	opts.ContextBudget = least(opts.ContextBudget, ag.ContextBudget, in.Budget)
	if in.Allow != nil {
		opts.AllowedDevices = append([]string{}, *in.Allow...) // empty = nothing
	}
	opts.DeniedDevices = append(opts.DeniedDevices, in.Deny...)
	undo, err := at.plant(ctx, p, in.Worktree, &opts)
	if err != nil {
		return 0, err
	}
	if in.Background {
		p.kids.add(a.Child, 0)
	} else {
		p.kids.await(a.Child) // before it can end
	}
	child, err := at.sys.spawn(ctx, in.Intent, ag, opts)
	if err != nil {
		p.kids.forget(a.Child)
		undo()
		if errors.Is(err, errStopping) || errors.Is(context.Cause(p.ctx), errStopping) {
			return 0, at.stopping(p)
		}
		return 0, err
	}
	return child.PID, nil
}

// inBackground notes a child that is not waited for, and says so.
func (at *agentActions) inBackground(p *Process, id types.UUID, pid types.PID) string {
	p.kids.add(id, pid)
	text := fmt.Sprintf("Started as PID %d in the background. You get a message when it ends; wait gives you its result.", pid)
	if tree := at.planted(p, id); tree != "" {
		text += " " + tree
	}
	return text
}

// attach finds the process that an interrupted call was about to start: alive, ended, or not begun yet.
// One that is suspended suspends its parent too.
func (at *agentActions) attach(ctx context.Context, p *Process, a *loop.Action) (string, error) {
	background := recovery.Background(a.Call.Input)
	if c, ok := at.table.byID(a.Child); ok {
		if background {
			return at.inBackground(p, c.UUID, c.PID), nil
		}
		return at.awaitChild(ctx, p, c.UUID, c.PID)
	}
	if at.lifecycle == Lifecycle(NoLifecycle{}) { // nobody knows whether it was started
		return "", types.Errorf(types.ErrInDoubt, "Spawn", a.Child.String(), "%s", recovery.Explain(a.Earlier, recovery.Unknown))
	}
	info, err := at.lifecycle.Stored(a.Child)
	switch {
	case types.CodeOf(err) == types.ErrNotFound:
		return at.spawnChild(ctx, p, a)
	case err != nil:
		return "", err
	case background:
		return at.inBackground(p, info.UUID, info.PID), nil
	case info.Suspended || info.Exit == nil:
		return "", waitsFor(info.PID, info.UUID, orDefault(info.SuspendReason, "suspended"))
	}
	return at.childEnded(p, Info{ProcStatus: types.ProcStatus{PID: info.PID, UUID: info.UUID, Exit: info.Exit}, Result: info.Result})
}

// waitsFor is the end of a call that waits for a suspended child.
func waitsFor(pid types.PID, id types.UUID, reason string) error {
	return &loop.Waiting{For: types.SuspendFor(types.SuspendChild, fmt.Sprintf("child PID %d (%s), which is suspended: %s", pid, id, reason))}
}

// awaitChild waits for a child and returns its result. If ctx ends first, the child runs on in the
// background.
func (at *agentActions) awaitChild(ctx context.Context, p *Process, id types.UUID, pid types.PID) (string, error) {
	p.kids.await(id)
	end, err := at.sys.By(p.PID).WaitInfo(ctx, pid)
	if err == nil {
		p.kids.awaited(id)
		return at.childEnded(p, end)
	}
	if errors.Is(context.Cause(p.ctx), errStopping) {
		return "", at.stopping(p)
	}
	p.kids.add(id, pid)
	p.kids.awaited(id)
	at.children.missed(p, kid{id: id, pid: pid}) // it may have ended meanwhile, and has told nobody
	return "", err
}

// stopping is the end of a call that the end of the daemon cuts off: it stays open. A child may hear of that
// end before its parent does, which must not take it for something that it has to wait for.
func (at *agentActions) stopping(p *Process) error {
	if at.stopped.Load() {
		<-p.ctx.Done() // Shutdown reaches everybody
	}
	return &loop.Waiting{For: types.SuspendFor(types.SuspendStopped, "the daemon")}
}

// childEnded is what a parent is told of the end of a child, and where its work is if it had a work tree of its own.
func (at *agentActions) childEnded(p *Process, end Info) (string, error) {
	result := end.Result
	if tree := at.planted(p, end.UUID); tree != "" {
		result = strings.TrimRight(result, "\n") + "\n\n[" + tree + "]"
	}
	switch {
	case end.Parked.Waits():
		return "", waitsFor(end.PID, end.UUID, end.Parked.SuspendReason)
	case end.Exit == nil:
		return "", at.stopping(p)
	case end.Exit.Code == types.ExitOK:
		return result, nil
	}
	err := types.Errorf(types.ErrDriver, "Spawn", "", "process %d ended with %s", end.PID, end.Exit)
	p.mu.Lock()
	p.failedChildren = append(p.failedChildren, recovery.FailedChild(err.Err.Error()))
	p.mu.Unlock()
	return result, err
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
