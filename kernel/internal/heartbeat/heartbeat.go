// Package heartbeat decides which processes make no progress any more, and what becomes of them. It looks at progress,
// not at death: a process that says nothing for long may be healthy, so by default it is only shown. It has no clock,
// starts nothing and knows no process.
package heartbeat

import "time"

// Policy says what becomes of a process that makes no progress.
type Policy string

// The policies.
const (
	Warn    Policy = "warn"    // it is shown, and told of once
	Restart Policy = "restart" // it is suspended and goes on from its record: the step in hand is done again
	Kill    Policy = "kill"    // it is ended
)

// Config is what is decided by.
type Config struct {
	Policy      Policy
	Interval    time.Duration // between two looks
	MaxRestarts int           // of one process in one step; after them it is only shown
}

// Clock is the time of a look, by both clocks: one that stands still while the host sleeps, since some beginning, and
// the one on the wall.
type Clock struct {
	Mono time.Duration
	Wall time.Time
}

// Beat is what is known of a process at a look.
type Beat[ID comparable] struct {
	ID     ID
	Step   int
	Last   time.Duration // when it has last made progress, by Clock.Mono
	Limit  time.Duration // how long it may make none; 0 = for ever
	Exempt string        // why it need not make any; empty = it must
}

// Verdict is what is thought of a process.
type Verdict struct {
	Age     time.Duration // since when it has made no progress, or was last excused
	Exempt  string
	Suspect time.Duration // since when it is suspect, by Clock.Mono; 0 = it is not
	Fresh   bool          // it has become suspect at this look
	Over    bool          // it was suspect until this look
	Act     Policy        // of a fresh one: what is to be done
}

// patience is how many intervals a look may come late before the host is taken to have slept.
const patience = 3

// Monitor remembers what it has seen. Make one with New. Not safe for concurrent use.
type Monitor[ID comparable] struct {
	cfg   Config
	last  Clock         // of the last look
	floor time.Duration // nothing that was before counts
	naps  int
	seen  map[ID]*state
}

// state is what is remembered of a process.
type state struct {
	excused  time.Duration // when it was exempt last
	suspect  time.Duration // 0 = it is not
	step     int           // of the last restart
	restarts int           // in that step
	there    bool          // at this look
}

// New returns a monitor that has seen nobody; the first look is due an interval after now.
func New[ID comparable](cfg Config, now Clock) *Monitor[ID] {
	return &Monitor[ID]{cfg: cfg, last: now, seen: map[ID]*state{}}
}

// Naps returns how often the host has slept.
func (m *Monitor[ID]) Naps() int { return m.naps }

// Look judges all processes, in their order. Those that are not among them are forgotten, but for their restarts, which
// keep is asked about.
func (m *Monitor[ID]) Look(now Clock, beats []Beat[ID], keep func(ID) bool) []Verdict {
	if m.slept(now) {
		m.floor = now.Mono
		m.naps++
	}
	m.last = now
	for _, s := range m.seen {
		s.there = false
	}
	out := make([]Verdict, len(beats))
	for i := range beats {
		s := m.seen[beats[i].ID]
		if s == nil {
			s = new(state)
			m.seen[beats[i].ID] = s
		}
		s.there = true
		out[i] = m.judge(now, &beats[i], s)
	}
	for id, s := range m.seen {
		if !s.there && (s.restarts == 0 || !keep(id)) {
			delete(m.seen, id)
		} else if !s.there {
			s.suspect = 0
		}
	}
	return out
}

// slept reports whether the host, or this program, stood still since the last look: the clock on the wall has gone on
// without the other one, or the look comes much too late. Silence of processes means nothing then.
func (m *Monitor[ID]) slept(now Clock) bool {
	mono := now.Mono - m.last.Mono
	return mono > patience*m.cfg.Interval || now.Wall.Sub(m.last.Wall)-mono > m.cfg.Interval
}

// judge judges one process, and notes what is to be remembered of it.
func (m *Monitor[ID]) judge(now Clock, b *Beat[ID], s *state) Verdict {
	if b.Exempt != "" || b.Limit <= 0 {
		s.excused = now.Mono
	}
	v := Verdict{Age: max(now.Mono-max(b.Last, m.floor, s.excused), 0), Exempt: b.Exempt}
	if b.Exempt == "" && b.Limit > 0 && v.Age >= b.Limit {
		if s.suspect == 0 {
			v.Fresh, v.Act = true, m.act(b, s)
			s.suspect = now.Mono
		}
		v.Suspect = s.suspect
		return v
	}
	v.Over = s.suspect != 0
	s.suspect = 0
	return v
}

// act says what is to be done with a process that has become suspect.
func (m *Monitor[ID]) act(b *Beat[ID], s *state) Policy {
	if m.cfg.Policy != Restart {
		return m.cfg.Policy
	}
	if b.Step != s.step {
		s.step, s.restarts = b.Step, 0
	}
	if s.restarts >= m.cfg.MaxRestarts {
		return Warn
	}
	s.restarts++
	return Restart
}
