package daemon

import (
	"time"

	"rnix/internal/event"
	"rnix/internal/platform"
	"rnix/internal/proc"
	"rnix/internal/service"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// begun is called when the process of a session is there: the session may have been lost before it was.
func (d platformer) begun(id types.UUID) {
	s := d.platforms.of(id)
	if s == nil {
		return
	}
	d.held(id, s.Standing())
	if lost, stop := s.Lost(); lost {
		d.lost(id, stop)
	}
}

// unconfirmed is what a process waits for whose session, or that of one above it, has a lease that has run out; nil = none.
func (d platformer) unconfirmed(p *kernel.Process) (reason string, changed <-chan struct{}) {
	if !d.platforms.any.Load() {
		return "", nil
	}
	for _, id := range d.sessionsAbove(p.PID, p.UUID) {
		if s := d.platforms.of(id); s != nil {
			if ours, changed := s.Owns(); !ours {
				return "the lease of its session", changed
			}
		}
	}
	return "", nil
}

// sessionsAbove returns the processes that have sessions for which a process acts, itself included.
func (d platformer) sessionsAbove(pid types.PID, id types.UUID) (ids []types.UUID) {
	if !d.platforms.any.Load() {
		return nil
	}
	for range service.MaxAncestors {
		if d.platforms.of(id) != nil {
			ids = append(ids, id)
		}
		i, err := d.kernel.Info(pid)
		if err != nil || i.PPID == 0 {
			break
		}
		if pid, id = i.PPID, i.ParentUUID; id == (types.UUID{}) {
			break
		}
	}
	return ids
}

// leaseOf returns the process for whose session the children of another one act; none if there is no session.
func (d platformer) leaseOf(pid types.PID, id types.UUID) (holder types.UUID) {
	for _, holder := range d.sessionsAbove(pid, id) {
		return holder
	}
	return holder
}

// bounded has the children of a session end when its lease runs out, should this program stand still then.
func (d platformer) bounded(id types.UUID) {
	if s := d.platforms.of(id); s != nil {
		proc.Lease(d.procs, id, max(s.Standing().Left, 0))
	}
}

// held makes the commands of a process and of its children stand still while nobody knows whose its session is, and says
// since when that is so. The processes wait by themselves: see unconfirmed.
func (d platformer) held(id types.UUID, st platform.Standing) {
	s := d.platforms.of(id)
	pid, ok := d.running(id)
	if s == nil || !ok {
		return
	}
	if !st.Ours {
		proc.Lease(d.procs, id, 0) // we are awake
	}
	if err := d.kernel.Hold(pid, !st.Ours); err != nil {
		return // it has ended meanwhile
	}
	e := leased(pid, id, s.cfg.SessionID, "ours", st)
	if !st.Ours {
		e.Result, e.Text = "run out", "the platform has not confirmed the lease in time: nothing is done until it does"
		d.log.Warn("the lease of a session has run out; its process waits", "session", s.cfg.SessionID, "uuid", id, "token", st.Token)
	}
	d.events.Append(e)
}

// leased is an event that says how a session stands.
func leased(pid types.PID, id types.UUID, session, result string, st platform.Standing) event.Event {
	now := time.Now()
	e := event.Event{Time: now, Kind: event.Leased, PID: pid, UUID: id, Name: session, Result: result, Step: int(st.Token), Until: now.Add(st.Left)}
	if st.Ours {
		e.Dur = st.Since
	}
	return e
}

// lost ends a process whose session belongs to somebody else, or is to end.
func (d platformer) lost(id types.UUID, stop bool) {
	pid, ok := d.running(id)
	if !ok {
		return
	}
	var err error
	if stop {
		err = d.kernel.Signal(pid, types.SIGTERM)
	} else {
		if s := d.platforms.of(id); s != nil {
			e := leased(pid, id, s.cfg.SessionID, "lost", s.Standing())
			e.Text = "another owner has the session, or may have it"
			d.events.Append(e)
		}
		err = d.kernel.Revoke(pid, "another owner has its session, or may have it")
	}
	if err != nil && types.CodeOf(err) != types.ErrNotFound {
		d.log.Error("a process that has lost its session cannot be ended", "pid", pid, "uuid", id, "err", err)
	}
}

// wire describes the session of a process, or what a platform has still to be told of one that has ended; nil if there is
// neither.
func (p *platforms) wire(id types.UUID) *ipc.PlatformSession {
	s := p.of(id)
	if s == nil {
		return p.owing(id)
	}
	st := s.State()
	return &ipc.PlatformSession{Session: st.SessionID, FencingToken: st.FencingToken, LastTick: st.LastTick, Pending: st.Pending, Trouble: st.Trouble}
}

// owing returns what a platform has still to be told of a process that has ended; nil if it knows all.
func (p *platforms) owing(id types.UUID) *ipc.PlatformSession {
	if !p.any.Load() {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	s, ok := p.owed[id]
	if !ok {
		return nil
	}
	return &s
}

// owe notes what a platform has still to be told of a process that has ended; nothing with pending 0.
func (p *platforms) owe(id types.UUID, session string, pending int, trouble error) {
	p.any.Store(true)
	p.mu.Lock()
	defer p.mu.Unlock()
	if pending == 0 {
		delete(p.owed, id)
		return
	}
	s := ipc.PlatformSession{Session: session, Pending: pending}
	if trouble != nil {
		s.Trouble = trouble.Error()
	}
	p.owed[id] = s
}
