package kernel

import (
	"context"

	"rnix/agent"
	"rnix/types"
)

// SupervisorManager starts processes that keep others running.
type SupervisorManager interface {
	// SpawnSupervisor starts a supervisor and its children and returns its PID. If a child cannot be
	// started, none is left.
	SpawnSupervisor(spec SupervisorSpec) (types.PID, error)
}

// SupervisorSpec says what a supervisor keeps running. The kernel knows no strategies: it is implemented above it, by
// internal/supervisor.Spec.
type SupervisorSpec interface {
	// Supervisor returns what is to be spawned, whose opts.Body is a Supervisor; INVALID if the spec makes no sense.
	Supervisor() (intent string, title *agent.Agent, opts SpawnOpts, err error)
}

// Supervisor is a Body that starts its children before its spawn has succeeded.
type Supervisor interface {
	Body
	// Begun waits until all children run. An error, also of ctx, means that the supervisor has ended, and its children.
	Begun(ctx context.Context) error
}

// SpawnSupervisor starts a supervisor: a process that has no model, starts its children in order, and
// starts them again as spec says. It returns when all children run. If one of them cannot be started,
// those before it are stopped in reverse order, and the error says which it was.
func (k *KernelImpl) SpawnSupervisor(spec SupervisorSpec) (types.PID, error) {
	return k.SpawnSupervisorContext(context.Background(), spec)
}

// SpawnSupervisorContext is SpawnSupervisor with a context for the work of starting. Its end takes back what was
// started; after SpawnSupervisorContext returned it means nothing to the supervisor.
func (k *KernelImpl) SpawnSupervisorContext(ctx context.Context, spec SupervisorSpec) (types.PID, error) {
	intent, title, opts, err := spec.Supervisor()
	if err != nil {
		return 0, err
	}
	s, ok := opts.Body.(Supervisor)
	if !ok {
		return 0, types.Errorf(types.ErrInternal, "SpawnSupervisor", opts.Name, "the body of a supervisor is a %T", opts.Body)
	}
	c, args := k.tracer.call(k.table.caller(opts.ParentPID), "SpawnSupervisor", ""), k.tracer.brief(opts.Name+", "+intent)
	c.begins(args) // it waits for the children
	p, err := spawnBegun(ctx, k, s, intent, title, opts)
	if c.ends(args, born(p), err); err != nil {
		return 0, err
	}
	return p.PID, nil
}

// spawnBegun starts a supervisor and waits until its children run. One whose children do not is ended, and gone.
func spawnBegun(ctx context.Context, k *KernelImpl, s Supervisor, intent string, title *agent.Agent, opts SpawnOpts) (*Process, error) {
	p, err := k.spawn(ctx, intent, title, opts)
	if err != nil {
		return nil, err
	}
	if err := s.Begun(ctx); err != nil {
		<-p.left
		k.reaper.reap(p)
		<-p.gone
		return nil, err
	}
	return p, nil
}
