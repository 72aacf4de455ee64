package kernel

import (
	"context"
	"errors"
	"sync/atomic"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/redact"
	"rnix/kernel/internal/actions"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// agentActions do what the kernel's own tools for agents ask for; package actions decides what that is, and words the answers.
type agentActions struct {
	sys      system
	reaper   *reaper
	table    *table
	mail     *mailer
	children *offspring
	signals  *signaller
	saves    *saver
	tracer   *tracer
	secrets  *redact.Set
	contexts *rnixctx.Manager
	stopped  *atomic.Bool // the kernel stops
	asks     bool         // there are persons who can be asked

	limits    Limits
	catalog   Catalog
	workspace Workspace
	lifecycle Lifecycle
}

// system is what the actions of agents ask of the kernel as a whole.
type system interface {
	spawn(ctx context.Context, intent string, ag *agent.Agent, opts SpawnOpts) (*Process, error)
	By(pid types.PID) By
	CheckDevices(allow, deny []string) error
	Subtree(pid types.PID) ([]types.PID, error)
}

// may is what a process may do with others.
func (at *agentActions) may(p *Process) actions.May {
	return actions.May{
		Spawn: p.Rights.Permits(spawnRight) && p.depth < at.limits.Depth, Signal: p.Rights.Permits(signalRight),
		Send: p.Rights.Permits(SendRight), Ask: at.asks && p.Rights.Permits(AskRight), Skills: at.catalog != Catalog(NoCatalog{}),
	}
}

// run performs one of the kernel's own actions for a process.
func (at *agentActions) run(ctx context.Context, p *Process, a *loop.Action, key string) (string, error) {
	c := &acting{at, p}
	return actions.Run(ctx, actions.Agent{Self: c, Family: (*actingFamily)(c), Mail: (*actingMail)(c)}, a, key)
}

// acting is a process whose model has called one of the kernel's own actions.
type acting struct {
	*agentActions
	p *Process
}

var _ actions.Self = (*acting)(nil)

// Me implements actions.Self.
func (c *acting) Me() actions.Me {
	return actions.Me{PID: c.p.PID, Forked: c.p.origin != (types.UUID{}), CLI: isCLI(c.p)}
}

// Stopping implements actions.Self.
func (c *acting) Stopping() bool { return c.stopped.Load() }

// Ended implements actions.Self.
func (c *acting) Ended(ctx context.Context, call string) error {
	if errors.Is(context.Cause(c.p.ctx), errStopping) {
		return c.CutOff()
	}
	return types.Errorf(types.ErrCancelled, call, "", "%w", context.Cause(ctx))
}

// CutOff implements actions.Self. A child may hear of the end of the kernel before its parent does, which must not take it for something
// that it has to wait for.
func (c *acting) CutOff() error {
	if c.stopped.Load() {
		<-c.p.ctx.Done() // Shutdown reaches everybody
	}
	return &loop.Waiting{For: types.SuspendFor(types.SuspendStopped, "the daemon")}
}

// SetPlan implements actions.Self.
func (c *acting) SetPlan(plan string) {
	c.p.mu.Lock()
	c.p.plan = plan
	c.p.mu.Unlock()
}
