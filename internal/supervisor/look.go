package supervisor

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"sync"
	"time"

	"rnix/internal/step"
	"rnix/internal/supervisor/supervise"
)

// MarkerRestart is the marker of a supervisor's decision to start a child again. Detail: the child's
// name and how its last run ended. Part of the on-disk format.
const MarkerRestart = "restart"

// Kind is the kind of a supervisor's body in a history.
const Kind = "supervisor"

// Record implements Body.
func (s *supervisor) Record() (step.BodyRecord, error) {
	if s.spec.Declared != nil {
		return step.BodyRecord{Kind: Kind, Spec: s.spec.Declared}, nil
	}
	spec, err := json.Marshal(s.spec.record())
	return step.BodyRecord{Kind: Kind, Spec: spec}, err
}

// decided records a restart and tells those who look.
func (s memory) decided(a supervise.Action, now time.Time) {
	m := s.members[a.Child]
	text := m.describe() + " " + m.why + ": it is started again"
	if !a.Until.IsZero() {
		text += " in " + a.Until.Sub(now).String()
	}
	if a.Count > 0 {
		text += fmt.Sprintf(" (restart %d of %d within %s)", a.Count, s.spec.Intensity.MaxRestarts, s.spec.Intensity.Period)
	}
	s.say("warning", "%s", text)
	detail, err := json.Marshal(restartRecord{Child: m.name, Why: m.why})
	if err != nil {
		s.say("warning", "%v", err) // cannot happen: it is plain data
	}
	s.keep(step.Marker{Name: MarkerRestart, PID: s.p.PID, Text: text, Detail: detail})
}

// restartRecord is the Detail of a MarkerRestart.
type restartRecord struct {
	Child string `json:"child"`
	Why   string `json:"why"` // how its last run ended, or that it could not be started
}

// say writes a line into the log of the process.
func (s *supervisor) say(category, format string, args ...any) {
	s.self.Say(category, fmt.Sprintf(format, args...))
}

// describe names a child, with its last run.
func (m *member) describe() string {
	out := "child " + strconv.Quote(m.name)
	if m.p != nil {
		out += " (PID " + m.p.PID.String() + ")"
	}
	return out
}

// publish makes the snapshot for SupervisorInfo, and forgets the children that the policy has.
func (s *supervisor) publish() {
	kids := s.policy.Children()
	out := make([]ChildStatus, len(kids))
	keep := make(map[supervise.ID]*member, len(kids))
	for i, c := range kids {
		m := s.members[c.ID]
		keep[c.ID] = m
		out[i] = ChildStatus{Name: m.name, UUID: m.id, Supervisor: m.spec.Supervisor != nil, Restart: m.spec.Restart, State: c.State.String(), Restarts: c.Restarts,
			Due: c.Due, Last: m.last, LastEnd: m.lastEnd}
		if m.p != nil {
			out[i].PID = m.p.PID
		}
		if m.asleep != "" && c.State != supervise.Stopping {
			out[i].State, out[i].Why = "suspended", m.asleep
		}
	}
	s.members = keep
	s.now.set(out, supervise.Save(s.policy).Restarts)
}

// statuses is the snapshot of the children for those who ask. Its lock is a leaf.
type statuses struct {
	mu sync.Mutex
	// Replaced, never changed.
	now []ChildStatus // +checklocks:mu
	// Replaced, never changed.
	restarts []time.Time // +checklocks:mu
}

func (s *statuses) set(now []ChildStatus, restarts []time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.now, s.restarts = now, restarts
}

// get returns how many restarts count at a time, and a copy of the children. The one that was refused, since it was one too
// many, has not happened.
func (s *statuses) get(now time.Time, most Intensity) (restarts int, children []ChildStatus) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return min(recent(s.restarts, now, most.Period), most.MaxRestarts), slices.Clone(s.now)
}

// recent returns how many restarts are within the period before a time.
func recent(restarts []time.Time, now time.Time, period time.Duration) (n int) {
	for _, t := range restarts {
		if now.Sub(t) <= period {
			n++
		}
	}
	return n
}
