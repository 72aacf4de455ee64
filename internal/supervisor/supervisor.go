// Package supervisor is the body of a process that keeps others running, after Erlang/OTP: it starts its children in
// order, and starts them again as its Spec says. What is decided, rnix/internal/supervisor/supervise decides; what
// the next run needs is kept in the history of the process before anything follows from it.
//
// SIGTERM and SIGINT stop the children in reverse order, then the supervisor ends. SIGKILL kills all at once. SIGPAUSE
// holds every start until SIGRESUME; the children go on. A supervisor whose children have all ended for good goes on
// too. One that has to start them again too often stops them, and ends with exit code 1, which its own supervisor
// takes for a failure.
//
// It knows no configuration: ChildSpec.Prepare settles each start as every other process is settled.
package supervisor

import (
	"cmp"
	"context"
	"strings"
	"time"

	"rnix/agent"
	"rnix/kernel"
	"rnix/types"
)

// Supervisor implements kernel.SupervisorSpec.
func (s Spec) Supervisor() (intent string, title *agent.Agent, opts kernel.SpawnOpts, err error) {
	s, err = s.settled(s.Name)
	if err != nil {
		return "", nil, kernel.SpawnOpts{}, err
	}
	return newSupervisor(s).Supervisor()
}

// Supervisor implements kernel.SupervisorSpec: its spec is settled.
func (s *supervisor) Supervisor() (intent string, title *agent.Agent, opts kernel.SpawnOpts, err error) {
	opts = s.spec.Opts
	opts.Name, opts.ParentPID, opts.Body = s.spec.Name, s.spec.ParentPID, s
	return s.spec.intent(), &agent.Agent{Manifest: agent.Manifest{Name: s.spec.title()}}, opts, nil
}

// Begun implements kernel.Supervisor. The end of ctx stops the children again, and that of killed kills them.
func (s *supervisor) Begun(ctx context.Context) error {
	select {
	case err := <-s.begun:
		return err
	case <-ctx.Done():
		s.Stop(types.SIGTERM)
	}
	select {
	case err := <-s.begun:
		return err
	case <-s.killed:
		_ = s.self.Kernel().By(s.spec.ParentPID).Signal(s.p.PID, types.SIGKILL) // it may have ended
		return <-s.begun
	}
}

// Table has the processes that live. *kernel.KernelImpl is one.
type Table interface {
	Process(pid types.PID) (*kernel.Process, bool)
	BodyOf(pid types.PID) kernel.Body
}

// StartChild starts another child of a supervisor of strategy SimpleOneForOne, and returns its PID. An
// empty intent is that of the template. A child that cannot be started is an error and nothing else. A
// paused supervisor starts none (CONFLICT).
func StartChild(k Table, supervisor types.PID, intent string) (types.PID, error) {
	s, err := find(k, "StartChild", supervisor)
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
	shut := s.self.Held()
	switch template := &s.spec.Children[0]; {
	case template.Supervisor != nil && intent != "":
		return fail(types.ErrInvalid, "its children are supervisors, which have no intent: leave it out")
	case template.Supervisor == nil && strings.TrimSpace(cmp.Or(intent, template.Intent)) == "":
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

// Status is a snapshot of a supervisor.
type Status struct {
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

// Info describes a supervisor that was not reaped, and its children. A process that is none
// is INVALID.
func Info(k Table, pid types.PID) (Status, error) {
	s, err := find(k, "SupervisorInfo", pid)
	if err != nil {
		return Status{}, err
	}
	restarts, children := s.now.get(time.Now(), s.spec.Intensity)
	return Status{PID: pid, Name: s.p.Name(), Strategy: s.spec.Strategy, Intensity: s.spec.Intensity, Restarts: restarts, Children: children}, nil
}

func find(k Table, op string, pid types.PID) (*supervisor, error) {
	if s, ok := k.BodyOf(pid).(*supervisor); ok {
		return s, nil
	}
	if _, alive := k.Process(pid); !alive {
		return nil, &types.SyscallError{Syscall: op, PID: pid, Code: types.ErrNotFound, Err: kernel.ErrNoProcess}
	}
	return nil, &types.SyscallError{Syscall: op, PID: pid, Code: types.ErrInvalid, Err: ErrNoSupervisor}
}
