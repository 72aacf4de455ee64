package platform

import (
	"time"
)

// Standing is whose a session is at a moment.
type Standing struct {
	Ours  bool          // the lease is good
	Token uint64        // under which it is, or was
	Since time.Duration // how long ago it was confirmed
	Left  time.Duration // how long the lease is good without another word of the platform; below 0 = how long ago it ran out
}

// Standing says whose the session is now.
func (s *Session) Standing() Standing {
	since, left := s.pulse.Remaining()
	return Standing{Ours: s.pulse.Check() == nil, Token: s.pulse.Token(), Since: since, Left: left}
}

// Owns reports whether the session is ours at this moment, and what is closed when that may have changed.
func (s *Session) Owns() (ours bool, changed <-chan struct{}) {
	s.mu.Lock()
	mine := s.mine
	s.mu.Unlock()
	return s.pulse.Check() == nil, mine
}

// confirmed is called when the platform has confirmed the lease.
func (s *Session) confirmed(at int64) {
	if s.cfg.Beat != nil {
		s.work.Go(func() { s.cfg.Beat(at) }) // a write of a file, for which no heartbeat waits
	}
	s.mu.Lock()
	close(s.mine)
	s.mine = make(chan struct{})
	s.mu.Unlock()
	select {
	case s.beats <- struct{}{}:
	default:
	}
}

// watch tells when the lease runs out and is confirmed again, and of the loss of the session.
func (s *Session) watch() {
	for ours := true; ; {
		st := s.Standing()
		if st.Ours != ours {
			if ours = st.Ours; s.cfg.Held != nil {
				s.cfg.Held(st)
			}
		}
		var runsOut <-chan time.Time
		if ours {
			runsOut = time.After(max(st.Left, time.Millisecond))
		}
		select {
		case <-s.pulse.LostOwnership():
			s.cfg.Lost(s.pulse.StopRequested())
			return
		case <-s.ctx.Done():
			return
		case <-s.beats:
		case <-runsOut:
		}
	}
}
