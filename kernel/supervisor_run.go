package kernel

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/kernel/internal/loop"
	"rnix/kernel/internal/supervise"
	"rnix/types"
)

// ErrNoSupervisor is the cause of INVALID errors about processes that are none.
var ErrNoSupervisor = errors.New("the process is not a supervisor")

// supervisor is the body of a process that keeps others running. The process's goroutine does what the
// policy wants; everybody else leaves word of what has happened.
type supervisor struct {
	spec  SupervisorSpec // settled; never changes
	k     *KernelImpl
	p     *Process
	begun chan error // room for one: how the first start ended. Always written to, once
	in    inbox
	work  context.Context // of starts; ends when the supervisor is to end
	halt  context.CancelFunc

	// Exclusive to the process's goroutine.
	policy   *supervise.Policy
	members  map[supervise.ID]*member
	byPID    map[types.PID]supervise.ID
	held     bool
	restored bool                  // the history goes on: adopt comes first
	told     bool                  // begun was written to
	failed   error                 // of the record
	cause    error                 // with which a child could not be started, the last one
	culprit  *member               // that child
	kept     []byte                // the note that was written last
	noted    map[supervise.ID]bool // whose intents are kept

	now statuses
}

var _ Body = (*supervisor)(nil)

// member is a child of a supervisor, over all its runs.
type member struct {
	spec    *ChildSpec
	name    string
	intent  string
	id      types.UUID // of the last run; zero = there was none
	again   bool       // the next start is the one of id, which was to be and never was
	p       *Process   // the last run; nil = none, or it is suspended
	asleep  string     // the last run is suspended, and that is why
	wants   types.Signal
	last    *types.ExitStatus // of a run that ended by itself
	lastEnd time.Time
	why     string    // it is not running, in words
	add     *addition // somebody waits for the first start
}

func newSupervisor(spec SupervisorSpec) *supervisor {
	s := &supervisor{
		spec: spec, policy: supervise.New(spec.policy()), members: map[supervise.ID]*member{}, byPID: map[types.PID]supervise.ID{},
		begun: make(chan error, 1), in: inbox{wake: make(chan struct{}, 1)}, noted: map[supervise.ID]bool{},
	}
	for _, c := range s.policy.Children() {
		s.members[c.ID] = s.member(c.ID, "")
	}
	return s
}

// Attach sets the signals up, and takes over what an earlier run has kept.
func (s *supervisor) Attach(k *KernelImpl, p *Process, was *recovery.State) error {
	s.k, s.p = k, p
	if was != nil {
		if err := (memory{s}).restore(was); err != nil {
			return err
		}
	}
	s.work, s.halt = context.WithCancel(p.ctx)
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sig := range []types.Signal{types.SIGTERM, types.SIGINT} {
		p.sigs.SetHandler(sig, s.ask)
	}
	p.sigs.SetHandler(types.SIGPAUSE, func(types.Signal) { k.pause(p, time.Now()); s.in.poke() })
	p.sigs.SetHandler(types.SIGRESUME, func(types.Signal) { k.resume(p, time.Now()); s.in.poke() })
	return nil
}

// ask has the supervisor stop its children and end.
func (s *supervisor) ask(sig types.Signal) {
	s.in.ask(sig)
	s.halt()
}

// Joined implements Body.
func (s *supervisor) Joined(child *Process) { s.in.join(child) }

// Ended implements Body.
func (s *supervisor) Ended(child *Process) { s.in.exit(child) }

// Run does what the policy wants until it wants no more, or the context ends.
func (s *supervisor) Run(ctx context.Context) (end loop.End) {
	defer func() { s.leave(end) }()
	if s.restored {
		finder{s}.adopt()
	}
	for {
		s.listen()
		if cause := context.Cause(ctx); cause != nil {
			return s.cut(cause)
		}
		now := time.Now()
		a := s.policy.Next(now)
		if !s.told && s.policy.Begun() {
			s.told = true
			s.publish()
			s.begun <- nil
		}
		switch a.Do {
		case supervise.Start:
			if m := s.members[a.Child]; !m.again || m.id == (types.UUID{}) {
				m.id = types.NewUUID()
			}
			memory{s}.keep()
			s.publish()
			s.start(a.Child)
		case supervise.Term:
			memory{s}.keep()
			s.say("", "%s is asked to end", s.members[a.Child].describe())
			s.stop(a.Child, types.SIGTERM)
		case supervise.Kill:
			s.say("warning", "%s is killed", s.members[a.Child].describe())
			s.stop(a.Child, types.SIGKILL)
		case supervise.Decide:
			s.decided(a, now)
		case supervise.End:
			return s.over()
		case supervise.Wait:
			memory{s}.keep()
			s.publish()
			s.wait(ctx, a.Until)
		}
	}
}

// wait waits until there is word, or for a time.
func (s *supervisor) wait(ctx context.Context, until time.Time) {
	w := waiting{reason: "its children"}
	if !until.IsZero() {
		w = waiting{reason: "the next restart", until: until}
		if s.policy.Outcome().Cause != 0 {
			w.reason = "its children to end"
		}
	}
	s.k.setWait(s.p, w)
	var alarm <-chan time.Time
	if !until.IsZero() {
		t := time.NewTimer(time.Until(until))
		defer t.Stop()
		alarm = t.C
	}
	select {
	case <-s.in.wake:
	case <-alarm:
	case <-ctx.Done():
	}
}

// listen tells the policy what has happened.
func (s *supervisor) listen() {
	joins, exits, adds := s.in.take()
	for _, c := range joins {
		finder{s}.joined(c)
	}
	if s.in.end() != 0 {
		s.policy.Stop()
	}
	for _, a := range adds {
		if s.policy.Outcome().Cause != 0 {
			a.refuse(s.p.PID)
			continue
		}
		id := s.policy.Add()
		s.members[id] = s.member(id, a.intent)
		s.members[id].add = a
	}
	for _, c := range exits {
		s.exited(c)
	}
	if shut := s.p.gate.Closed(); shut != s.held {
		s.held = shut
		s.policy.Hold(shut)
	}
}

// exited reaps a child and tells the policy, unless it is suspended with the kernel.
func (s *supervisor) exited(c *Process) {
	i := s.k.info(c)
	s.k.reapProcess(c)
	exit, ok := c.Exit()
	id, mine := s.byPID[c.PID]
	delete(s.byPID, c.PID)
	if !mine {
		return
	}
	if !ok || i.Parked.Waits() {
		if !s.k.stopped.Load() {
			finder{s}.sleeps(id, orDefault(i.Parked.SuspendReason, "it was suspended"))
		}
		return
	}
	m := s.members[id]
	m.last, m.lastEnd, m.why, m.wants = &exit, i.EndedAt, "ended with "+exit.String(), 0
	s.policy.Exited(id, failure(exit))
}

// failure reports whether an end is one that a transient child is started again after. What an operator
// ended has not failed.
func failure(exit types.ExitStatus) bool {
	return exit.Code != types.ExitOK && exit.Code != types.ExitCancelled && !errors.As(exit.Err, new(signalled))
}

// start starts a child and tells the policy how that went.
func (s *supervisor) start(id supervise.ID) {
	m := s.members[id]
	if m.again, m.wants, m.asleep = false, 0, ""; s.failed != nil {
		s.policy.Failed(id)
		return
	}
	s.k.setWait(s.p, waiting{tool: "start of " + m.name, since: time.Now()})
	p, err := s.spawn(m)
	if err != nil && s.k.stopped.Load() {
		<-s.p.ctx.Done() // nothing has failed: the kernel stops
		return
	}
	if s.in.end() != 0 {
		s.policy.Stop() // before the failure that it may have caused
	}
	if a := m.add; a != nil {
		m.add = nil
		if a.err = err; err == nil {
			a.pid = p.PID
		}
		close(a.done)
	}
	if err != nil {
		s.cause, s.culprit, m.why = err, m, "could not be started: "+err.Error()
		s.say("warning", "%s %s", m.describe(), m.why)
		s.policy.Failed(id)
		return
	}
	m.p, s.byPID[p.PID] = p, id
	s.policy.Started(id, time.Now())
}

func (s *supervisor) spawn(m *member) (*Process, error) {
	if m.spec.Supervisor != nil {
		spec := *m.spec.Supervisor
		spec.Name, spec.ParentPID, spec.Opts.UUID = m.name, s.p.PID, m.id
		return s.k.spawnSupervisor(s.work, s.p.ctx.Done(), spec)
	}
	ag, opts := m.spec.Agent, m.spec.Opts
	if m.spec.Prepare != nil {
		var err error
		if ag, opts, err = m.spec.Prepare(s.work); err != nil {
			return nil, err
		}
	}
	opts.UUID, opts.ParentPID, opts.Name = m.id, s.p.PID, orDefault(opts.Name, m.name)
	return spawnBy(s.work, s.k, s.p, m.intent, ag, opts)
}

// stop sends a signal to a child. The agents that an agent has started go with it; a supervisor stops
// its children itself, in its order.
func (s *supervisor) stop(id supervise.ID, sig types.Signal) {
	m := s.members[id]
	m.wants = sig
	if m.p == nil {
		finder{s}.dismiss(id)
		return
	}
	if m.spec.Supervisor != nil && sig != types.SIGKILL {
		s.k.deliver(sig, m.p)
		return
	}
	procs, _ := s.k.table.signalled(m.p, sig)
	for _, p := range procs {
		s.k.deliver(sig, p)
	}
}

// over says how the supervisor ends when all its children are down.
func (s *supervisor) over() loop.End {
	o := s.policy.Outcome()
	fail := func(err *types.SyscallError) loop.End {
		err.PID = s.p.PID
		return loop.End{Exit: types.ExitStatus{Code: types.ExitError, Reason: rnixctx.Elide(err.Err.Error(), 400), Err: err}}
	}
	switch {
	case s.failed != nil:
		return fail(types.Errorf(types.ErrStorage, "Supervise", "", "the history cannot be written: %w", s.failed))
	case o.Cause == supervise.GaveUp:
		return fail(types.Errorf(types.ErrExhausted, "Supervise", "", "gave up: %s %s, after %d restarts within %s", s.members[o.Child].describe(), s.members[o.Child].why, s.spec.Intensity.MaxRestarts, s.spec.Intensity.Period))
	case o.Cause == supervise.NotBegun:
		return fail(types.Errorf(types.CodeOf(s.cause), "SpawnSupervisor", "", "child %q could not be started: %w", s.culprit.name, s.cause))
	}
	return loop.End{Cause: signalled{s.in.end()}}
}

// cut is the end of a supervisor whose context has ended: it is killed, with all its children, or the
// kernel stops.
func (s *supervisor) cut(cause error) loop.End {
	if !errors.Is(cause, errStopping) {
		for _, c := range slices.Backward(s.policy.Children()) {
			if c.State == supervise.Running || c.State == supervise.Stopping {
				s.stop(c.ID, types.SIGKILL)
			}
		}
	}
	return loop.End{Cause: cause}
}

// leave answers those who still wait.
func (s *supervisor) leave(end loop.End) {
	s.publish()
	adds := s.in.close()
	for _, m := range s.members {
		if m.add != nil {
			adds = append(adds, m.add)
		}
	}
	for _, a := range adds {
		a.refuse(s.p.PID)
	}
	if s.told {
		return
	}
	err, cause := end.Exit.Err, end.Cause
	if cause == nil {
		cause = errors.New(types.ReasonUnexpected) // a panic, which the process's exit tells of
	}
	if err == nil {
		err = &types.SyscallError{Syscall: "SpawnSupervisor", PID: s.p.PID, Code: types.ErrCancelled, Err: fmt.Errorf("it was ended while it started its children: %w", cause)}
	}
	s.begun <- err
}
