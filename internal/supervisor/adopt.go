package supervisor

import (
	"cmp"
	"context"
	"slices"

	"rnix/internal/supervisor/supervise"
	"rnix/kernel"
	"rnix/types"
)

// finder finds the children of a supervisor that it has not started itself: those of its last run, and those that
// somebody else lets go on.
type finder struct{ *supervisor }

// adopt finds out what has become of the children of a supervisor that goes on, and lets those go on that are
// suspended. What has failed meanwhile is dealt with as in life.
func (s finder) adopt() {
	s.listen()
	for _, c := range s.policy.Children() {
		if c.State == supervise.Starting && s.members[c.ID].p == nil {
			s.recover(c.ID)
		}
	}
}

// maxLooks bounds how often it is looked what has become of a child that somebody else changes meanwhile.
const maxLooks = 5

// recover finds out what has become of one child.
func (s finder) recover(id supervise.ID) {
	m := s.members[id]
	for range maxLooks {
		if s.listen(); m.p != nil || m.asleep != "" {
			return // it has joined meanwhile
		}
		if s.in.end() != 0 || s.self.Stopping() {
			break
		}
		if p, alive := s.self.Kernel().ByUUID(m.id); alive { // it went on without us: it must be below us
			if err := s.self.Kernel().Suspend(s.work, p.PID); err != nil && s.work.Err() != nil {
				break
			}
		}
		info, err := s.self.Stored(m.id)
		switch {
		case types.CodeOf(err) == types.ErrNotFound:
			m.again = true
			s.policy.Unstarted(id)
			return
		case err != nil:
			s.lost(id, err)
			return
		case info.Exit != nil && !info.Suspended:
			m.last, m.lastEnd, m.why = info.Exit, info.DeadAt, "ended with "+info.Exit.String()
			s.policy.Adopted(id)
			s.policy.Exited(id, failure(*info.Exit))
			return
		case info.Exit != nil:
			s.sleeps(id, cmp.Or(info.SuspendReason, "it waits"))
			return
		}
		_, err = s.self.Revive(s.work, m.id)
		switch code := types.CodeOf(err); {
		case err == nil || code == types.ErrConflict: // somebody was quicker
		case code == types.ErrStorage:
			s.lost(id, err)
			return
		default:
			s.sleeps(id, err.Error())
			return
		}
	}
	s.sleeps(id, "the supervisor was ended before it looked")
}

// lost is the end of a child whose history is gone or damaged.
func (s finder) lost(id supervise.ID, err error) {
	m := s.members[id]
	m.why = "is lost: " + err.Error()
	s.say("warning", "%s %s", m.describe(), m.why)
	s.policy.Adopted(id)
	s.policy.Exited(id, true)
}

// sleeps notes that a child is suspended: it has not ended, and joins when somebody lets it go on.
func (s finder) sleeps(id supervise.ID, why string) {
	m := s.members[id]
	if m.p != nil {
		delete(s.byPID, m.p.PID)
	}
	m.p, m.asleep = nil, why
	s.policy.Adopted(id)
	s.say("warning", "%s is suspended: %s", m.describe(), why)
	if m.wants != 0 { // it was to end when it was suspended
		s.dismiss(id)
	}
}

// joined takes a child in that has become visible without having been started here: it goes on. What ran of it before has ended
// then, although the supervisor may not have heard of that yet: word of the end may come in the same breath, and is of no run
// that counts any more.
func (s finder) joined(c *kernel.Process) {
	if _, ours := s.byPID[c.PID]; ours {
		return
	}
	for _, k := range s.policy.Children() {
		m := s.members[k.ID]
		if m.id != c.UUID || !slices.Contains([]supervise.State{supervise.Starting, supervise.Running, supervise.Stopping}, k.State) {
			continue
		}
		if m.p != nil {
			delete(s.byPID, m.p.PID)
		}
		m.p, m.asleep = c, ""
		s.byPID[c.PID] = k.ID
		s.policy.Adopted(k.ID)
		if m.wants != 0 {
			s.stop(k.ID, m.wants)
		}
		return
	}
}

// dismiss ends a suspended child, which has no process.
func (s finder) dismiss(id supervise.ID) {
	m := s.members[id]
	err := s.self.Dismiss(context.WithoutCancel(s.self.Context()), m.id, "terminated: its supervisor has stopped it")
	switch types.CodeOf(err) {
	case types.ErrConflict:
		return // it is just being resumed, and joins
	case "", types.ErrNotFound, types.ErrUnavailable: // the last: no histories are kept
	default:
		s.say("warning", "%s stays suspended: %v", m.describe(), err)
	}
	m.asleep, m.wants = "", 0
	s.policy.Exited(id, false)
}
