package supervisor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/supervisor/supervise"
	"rnix/kernel"
	"rnix/types"
)

// ErrNoSupervisor is the cause of INVALID errors about processes that are none.
var ErrNoSupervisor = errors.New("the process is not a supervisor")

// supervisor is the body of a process that keeps others running. The process's goroutine does what the
// policy wants; everybody else leaves word of what has happened.
type supervisor struct {
	spec  Spec // settled; never changes
	self  kernel.Self
	p     *kernel.Process
	begun chan error // room for one: how the first start ended. Always written to, once
	in    inbox
	work  context.Context // of starts; ends when the supervisor is to end
	halt  context.CancelFunc
	// Closed when whoever starts it is killed; nil = that cannot be.
	killed <-chan struct{}

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

var (
	_ kernel.Supervisor = (*supervisor)(nil)
	_ kernel.Pauser     = (*supervisor)(nil)
	_ kernel.Stopper    = (*supervisor)(nil)
)

// member is a child of a supervisor, over all its runs.
type member struct {
	spec    *ChildSpec
	name    string
	intent  string
	id      types.UUID      // of the last run; zero = there was none
	again   bool            // the next start is the one of id, which was to be and never was
	p       *kernel.Process // the last run; nil = none, or it is suspended
	asleep  string          // the last run is suspended, and that is why
	wants   types.Signal
	last    *types.ExitStatus // of a run that ended by itself
	lastEnd time.Time
	why     string    // it is not running, in words
	add     *addition // somebody waits for the first start
}

func newSupervisor(spec Spec) *supervisor {
	s := &supervisor{
		spec: spec, policy: supervise.New(spec.policy()), members: map[supervise.ID]*member{}, byPID: map[types.PID]supervise.ID{},
		begun: make(chan error, 1), in: inbox{wake: make(chan struct{}, 1)}, noted: map[supervise.ID]bool{},
	}
	for _, c := range s.policy.Children() {
		s.members[c.ID] = s.spec.member(c.ID, "")
	}
	return s
}

// Attach takes over what an earlier run has kept.
func (s *supervisor) Attach(self kernel.Self, was *recovery.State) error {
	s.self, s.p = self, self.Process()
	if was != nil {
		if err := (memory{s}).restore(was); err != nil {
			return err
		}
	}
	s.work, s.halt = context.WithCancel(self.Context())
	return nil
}

// GateMoved implements kernel.Pauser.
func (s *supervisor) GateMoved() { s.in.poke() }

// Stop implements kernel.Stopper: the supervisor stops its children and ends.
func (s *supervisor) Stop(sig types.Signal) {
	s.in.ask(sig)
	s.halt()
}

// Joined implements Body.
func (s *supervisor) Joined(child *kernel.Process) { s.in.join(child) }

// Ended implements Body.
func (s *supervisor) Ended(child *kernel.Process) { s.in.exit(child) }

// Run does what the policy wants until it wants no more, or the context ends.
func (s *supervisor) Run(ctx context.Context) (end kernel.End) {
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
			memory{s}.decided(a, now)
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
	reason := "its children"
	if !until.IsZero() {
		reason = "the next restart"
		if s.policy.Outcome().Cause != 0 {
			reason = "its children to end"
		}
	}
	s.self.SetWait(reason, until)
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
		s.members[id] = s.spec.member(id, a.intent)
		s.members[id].add = a
	}
	for _, c := range exits {
		s.exited(c)
	}
	if shut := s.self.Held(); shut != s.held {
		s.held = shut
		s.policy.Hold(shut)
	}
}

// exited reaps a child and tells the policy, unless it is suspended with the kernel.
func (s *supervisor) exited(c *kernel.Process) {
	i := s.self.By().Reap(c)
	id, mine := s.byPID[c.PID]
	delete(s.byPID, c.PID)
	if !mine {
		return
	}
	if i.Exit == nil || i.Parked.Waits() {
		if !s.self.Stopping() {
			finder{s}.sleeps(id, cmp.Or(i.Parked.SuspendReason, "it was suspended"))
		}
		return
	}
	m := s.members[id]
	m.last, m.lastEnd, m.why, m.wants = i.Exit, i.EndedAt, "ended with "+i.Exit.String(), 0
	s.policy.Exited(id, failure(*i.Exit))
}

// failure reports whether an end is one that a transient child is started again after. What an operator
// ended has not failed, and what was refused something would be refused it again.
func failure(exit types.ExitStatus) bool {
	return !exit.Answered() && exit.Code != types.ExitCancelled && !kernel.IsSignal(exit.Err)
}

// start starts a child and tells the policy how that went.
func (s *supervisor) start(id supervise.ID) {
	m := s.members[id]
	if m.again, m.wants, m.asleep = false, 0, ""; s.failed != nil {
		s.policy.Failed(id)
		return
	}
	s.self.SetBusy("start of " + m.name)
	p, err := s.spawn(m)
	if err != nil && s.self.Stopping() {
		<-s.self.Context().Done() // nothing has failed: the kernel stops
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

func (s *supervisor) spawn(m *member) (*kernel.Process, error) {
	if m.spec.Supervisor != nil {
		spec := *m.spec.Supervisor
		spec.Name, spec.ParentPID, spec.Opts.UUID = m.name, s.p.PID, m.id
		below := newSupervisor(spec)
		below.killed = s.self.Context().Done()
		_, err := s.self.Kernel().SpawnSupervisorContext(s.work, below)
		return below.p, err
	}
	ag, opts := m.spec.Agent, m.spec.Opts
	if m.spec.Prepare != nil {
		var err error
		if ag, opts, err = m.spec.Prepare(s.work); err != nil {
			return nil, err
		}
	}
	opts.UUID, opts.ParentPID, opts.Name = m.id, s.p.PID, cmp.Or(opts.Name, m.name)
	return s.self.By().Spawn(s.work, m.intent, ag, opts)
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
	by := s.self.By()
	if m.spec.Supervisor != nil && sig != types.SIGKILL {
		_ = by.Signal(m.p.PID, sig) // it may have ended
		return
	}
	_, _ = by.SignalTree(m.p.PID, sig) // likewise
}

// over says how the supervisor ends when all its children are down.
func (s *supervisor) over() kernel.End {
	o := s.policy.Outcome()
	fail := func(err *types.SyscallError) kernel.End {
		err.PID = s.p.PID
		return kernel.End{Exit: types.ExitStatus{Code: types.ExitError, Reason: rnixctx.Elide(err.Err.Error(), 400), Err: err}}
	}
	switch {
	case s.failed != nil:
		return fail(types.Errorf(types.ErrStorage, "Supervise", "", "the history cannot be written: %w", s.failed))
	case o.Cause == supervise.GaveUp:
		return fail(types.Errorf(types.ErrExhausted, "Supervise", "", "gave up: %s %s, after %d restarts within %s", s.members[o.Child].describe(), s.members[o.Child].why, s.spec.Intensity.MaxRestarts, s.spec.Intensity.Period))
	case o.Cause == supervise.NotBegun:
		return fail(types.Errorf(types.CodeOf(s.cause), "SpawnSupervisor", "", "child %q could not be started: %w", s.culprit.name, s.cause))
	}
	return kernel.End{Cause: kernel.BySignal(s.in.end())}
}

// cut is the end of a supervisor whose context has ended: it is killed, with all its children, or the
// kernel stops.
func (s *supervisor) cut(cause error) kernel.End {
	if !kernel.IsStop(cause) {
		for _, c := range slices.Backward(s.policy.Children()) {
			if c.State == supervise.Running || c.State == supervise.Stopping {
				s.stop(c.ID, types.SIGKILL)
			}
		}
	}
	return kernel.End{Cause: cause}
}

// leave answers those who still wait.
func (s *supervisor) leave(end kernel.End) {
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
