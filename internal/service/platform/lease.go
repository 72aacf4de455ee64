package platform

import (
	"time"

	"rnix/internal/event"
	engine "rnix/internal/platform"
	"rnix/types"
)

// Waits returns what a process waits for if its session, or that of one above it, has a lease that has run out, and what is closed when
// that may have changed; nil = it need not wait.
func (s *Service) Waits(pid types.PID, id types.UUID) (reason string, changed <-chan struct{}) {
	for _, had := range s.open.above(s.Kernel, pid, id) {
		if ours, changed := had.lease.Owns(); !ours {
			return "the lease of its session", changed
		}
	}
	return "", nil
}

// Holder returns the process for whose session the OS children of a process act; none if there is no session.
func (s *Service) Holder(pid types.PID, id types.UUID) types.UUID {
	for _, had := range s.open.above(s.Kernel, pid, id) {
		return had.claim.by
	}
	return types.UUID{}
}

// holdTime is how long this program, awake, may take to make the commands of a process stand still. If it takes longer, it stands still
// itself, and they are ended: see proc.Lease.
const holdTime = 10 * time.Second

// bound has the commands of a process end with its lease, should this program stand still then. A lease that has run out is for held.
func (s *Service) bound(id types.UUID) {
	had := s.open.of(id)
	if had == nil {
		return
	}
	had.holding.Lock()
	defer had.holding.Unlock()
	if st := had.lease.Standing(); st.Ours {
		s.Processes.Bound(id, max(st.Left, 1))
	}
}

// held makes the commands of a process and of its children stand still while it is not known which owner its session has, and says since
// when that is so. The processes themselves wait at their next step: see Waits. It looks at the lease itself: a call that comes late must
// not undo what a later one has done.
func (s *Service) held(id types.UUID) {
	had := s.open.of(id)
	p, ok := s.Kernel.ByUUID(id)
	if had == nil || !ok {
		return
	}
	had.holding.Lock()
	defer had.holding.Unlock()
	st := had.lease.Standing()
	if st.Ours {
		s.Processes.Bound(id, max(st.Left, 1)) // before anything acts again
	} else {
		s.Processes.Bound(id, holdTime) // we are awake
	}
	err := s.Kernel.Hold(p.PID, !st.Ours)
	if !st.Ours {
		s.Processes.Bound(id, 0) // nothing acts any more
	}
	if err != nil {
		return // it has ended meanwhile
	}
	e := leased(p.PID, id, had.cfg.SessionID, "ours", st)
	if !st.Ours {
		e.Result, e.Text = "run out", "the platform has not confirmed the lease in time: nothing is done until it does"
		s.Log.Warn("the lease of a session has run out; its process waits", "session", had.cfg.SessionID, "uuid", id, "token", st.Token)
	}
	s.Events.Append(e)
}

// leased is an event that says how a session stands.
func leased(pid types.PID, id types.UUID, session, result string, st engine.Standing) event.Event {
	now := time.Now()
	e := event.Event{Time: now, Kind: event.Leased, PID: pid, UUID: id, Name: session, Result: result, Step: int(st.Token), Until: now.Add(st.Left)}
	if st.Ours {
		e.Dur = st.Since
	}
	return e
}

// lost ends a process that has lost its session to another owner, or that the platform wants to stop.
func (s *Service) lost(id types.UUID, stop bool) {
	p, ok := s.Kernel.ByUUID(id)
	if !ok {
		return
	}
	var err error
	if stop {
		err = s.Kernel.Terminate(p.PID)
	} else {
		if had := s.open.of(id); had != nil {
			e := leased(p.PID, id, had.cfg.SessionID, "lost", had.lease.Standing())
			e.Text = "another owner has the session, or may have it"
			s.Events.Append(e)
		}
		err = s.Kernel.Revoke(p.PID, "another owner has its session, or may have it")
	}
	if err != nil && types.CodeOf(err) != types.ErrNotFound {
		s.Log.Error("a process that has lost its session cannot be ended", "pid", p.PID, "uuid", id, "err", err)
	}
}
