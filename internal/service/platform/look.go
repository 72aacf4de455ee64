package platform

import (
	"rnix/ipc"
	"rnix/types"
)

// State describes the session of a process, or what the platform does not know yet of one that has ended; nil if there is neither.
func (s *Service) State(id types.UUID) *ipc.PlatformSession {
	had := s.open.of(id)
	if had == nil {
		return s.open.owing(id)
	}
	st := had.lease.State()
	return &ipc.PlatformSession{Session: st.SessionID, FencingToken: st.FencingToken, LastTick: st.LastTick, Pending: st.Pending, Trouble: st.Trouble}
}

// Owing describes what the platform does not know yet of a process that has ended; nil if it knows all.
func (s *Service) Owing(id types.UUID) *ipc.PlatformSession { return s.open.owing(id) }

// Sessions returns the processes that have a session, and those of which the platform does not know all yet.
func (s *Service) Sessions() []types.UUID { return s.open.all() }

// Names returns what the platform calls the issue and the worker of the session of a process; empty if it has none.
func (s *Service) Names(id types.UUID) (issue, worker string) {
	if had := s.open.of(id); had != nil {
		issue, worker = had.cfg.IssueID, had.cfg.WorkerID
	}
	return issue, worker
}
