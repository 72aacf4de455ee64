package kernel

import (
	"context"
	"sync/atomic"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/redact"
	"rnix/types"
)

// agentActions are the kernel's own actions that agents call as tools: spawn, wait, send, recv, signal, ps, specialize.
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
