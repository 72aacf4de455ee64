package kernel

import (
	"context"
	"strings"
	"time"

	"rnix/agent"
	"rnix/types"
)

// SpawnSupervisor starts a supervisor: a process that has no model, starts its children in order, and
// starts them again as spec says. It returns when all children run. If one of them cannot be started,
// those before it are stopped in reverse order, and the error says which it was.
//
// SIGTERM and SIGINT stop the children in reverse order, then the supervisor ends. SIGKILL kills all at
// once. SIGPAUSE holds every start until SIGRESUME; the children go on. A supervisor whose children
// have all ended for good goes on too. One that has to start them again too often stops them, and ends
// with exit code 1, which its own supervisor takes for a failure.
func (k *KernelImpl) SpawnSupervisor(spec SupervisorSpec) (types.PID, error) {
	return k.SpawnSupervisorContext(context.Background(), spec)
}

// SpawnSupervisorContext is SpawnSupervisor with a context for the work of starting. Its end takes back what was
// started; after SpawnSupervisorContext returned it means nothing to the supervisor.
func (k *KernelImpl) SpawnSupervisorContext(ctx context.Context, spec SupervisorSpec) (types.PID, error) {
	spec, err := spec.settled(spec.Name)
	if err != nil {
		return 0, err
	}
	p, err := k.spawnSupervisor(ctx, nil, spec)
	if err != nil {
		return 0, err
	}
	return p.PID, nil
}

// spawnSupervisor starts a supervisor whose spec is settled, and waits until its children run. The end
// of ctx stops them again, and that of killed kills them.
func (k *KernelImpl) spawnSupervisor(ctx context.Context, killed <-chan struct{}, spec SupervisorSpec) (*Process, error) {
	c := k.tracer.call(k.table.caller(spec.ParentPID), "SpawnSupervisor", "")
	args := k.tracer.brief(spec.Name + ", " + spec.intent())
	c.begins(args) // it waits for the children
	p, err := startSupervisor(ctx, k, killed, spec)
	c.ends(args, born(p), err)
	return p, err
}

func startSupervisor(ctx context.Context, k *KernelImpl, killed <-chan struct{}, spec SupervisorSpec) (*Process, error) {
	s := newSupervisor(spec)
	opts := spec.Opts
	opts.Name, opts.ParentPID, opts.Body = spec.Name, spec.ParentPID, s
	title := &agent.Agent{Manifest: agent.Manifest{Name: spec.title()}}
	if _, err := k.spawn(ctx, spec.intent(), title, opts); err != nil {
		return nil, err
	}
	var err error
	select {
	case err = <-s.begun:
	case <-ctx.Done():
		s.ask(types.SIGTERM)
		select {
		case err = <-s.begun:
		case <-killed:
			s.p.cancel(signalled{types.SIGKILL})
			err = <-s.begun
		}
	}
	if err != nil {
		<-s.p.left
		k.reapProcess(s.p)
		<-s.p.gone
		return nil, err
	}
	return s.p, nil
}

// StartChild starts another child of a supervisor of strategy SimpleOneForOne, and returns its PID. An
// empty intent is that of the template. A child that cannot be started is an error and nothing else. A
// paused supervisor starts none (CONFLICT).
func (k *KernelImpl) StartChild(supervisor types.PID, intent string) (types.PID, error) {
	s, err := k.supervisor("StartChild", supervisor)
	if err != nil {
		return 0, err
	}
	fail := func(code types.ErrCode, text string) (types.PID, error) {
		e := types.Errorf(code, "StartChild", "", "%s", text)
		e.PID = supervisor
		return 0, e
	}
	if s.spec.Strategy != SimpleOneForOne {
		return fail(types.ErrInvalid, "its strategy is "+string(s.spec.Strategy)+", and only one of "+string(SimpleOneForOne)+" takes children at run time")
	}
	shut := s.p.gate.Closed()
	switch template := &s.spec.Children[0]; {
	case template.Supervisor != nil && intent != "":
		return fail(types.ErrInvalid, "its children are supervisors, which have no intent: leave it out")
	case template.Supervisor == nil && strings.TrimSpace(orDefault(intent, template.Intent)) == "":
		return fail(types.ErrInvalid, "the intent is empty")
	case shut:
		return fail(types.ErrConflict, "it is paused: resume it first")
	}
	c := &addition{intent: intent, done: make(chan struct{})}
	if !s.in.add(c) {
		return fail(types.ErrCancelled, "it is ending")
	}
	<-c.done
	return c.pid, c.err
}

// SupervisorStatus is a snapshot of a supervisor.
type SupervisorStatus struct {
	PID       types.PID
	Name      string
	Strategy  Strategy
	Intensity Intensity
	Restarts  int           // how many count at the moment
	Children  []ChildStatus // in order of their start; those that are forgotten are missing
}

// ChildStatus is a snapshot of a child of a supervisor.
type ChildStatus struct {
	Name       string
	PID        types.PID  // of its last run; 0 = it never ran, or not since the supervisor goes on
	UUID       types.UUID // likewise, of that run
	Supervisor bool       // it is one, too
	Restart    Restart
	State      string            // down, starting, running, suspended, stopping, ended, delayed, retrying
	Why        string            // of a suspended one: what for
	Restarts   int               // how often it was started again, failed starts too
	Due        time.Time         // when it is delayed: until when
	Last       *types.ExitStatus // how the run before ended by itself; nil = none did
	LastEnd    time.Time         // when that was
}

// SupervisorInfo describes a supervisor that was not reaped, and its children. A process that is none
// is INVALID.
func (k *KernelImpl) SupervisorInfo(pid types.PID) (SupervisorStatus, error) {
	s, err := k.supervisor("SupervisorInfo", pid)
	if err != nil {
		return SupervisorStatus{}, err
	}
	restarts, children := s.now.get(time.Now(), s.spec.Intensity)
	return SupervisorStatus{PID: pid, Name: s.p.Name(), Strategy: s.spec.Strategy, Intensity: s.spec.Intensity, Restarts: restarts, Children: children}, nil
}

func (k *KernelImpl) supervisor(op string, pid types.PID) (*supervisor, error) {
	p, err := k.table.lookup(op, pid)
	if err != nil {
		return nil, err
	}
	s, ok := p.opts.Body.(*supervisor)
	if !ok {
		return nil, &types.SyscallError{Syscall: op, PID: pid, Code: types.ErrInvalid, Err: ErrNoSupervisor}
	}
	return s, nil
}
