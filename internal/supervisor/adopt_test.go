package supervisor

import (
	"testing"
	"time"

	"rnix/internal/supervisor/supervise"
	"rnix/kernel"
	"rnix/types"
)

// A child that goes on is taken in although the end of its run before has not been heard of yet: both come in one breath when
// the heartbeat restarts it.
func TestAChildThatGoesOnIsTakenInBeforeItsEndIsHeardOf(t *testing.T) {
	s := newSupervisor(Spec{Name: "sup", Children: []ChildSpec{child("a")}})
	a := s.policy.Next(time.Now())
	if a.Do != supervise.Start {
		t.Fatalf("%+v", a)
	}
	m := s.members[a.Child]
	m.id = types.NewUUID()
	before, next := &kernel.Process{PID: 2, UUID: m.id}, &kernel.Process{PID: 3, UUID: m.id}
	m.p, s.byPID[before.PID] = before, a.Child
	s.policy.Started(a.Child, time.Now())

	s.in.join(before)
	s.in.exit(before)
	s.in.join(next)
	joins, exits, _ := s.in.take()
	for _, c := range joins {
		finder{s}.joined(c)
	}
	if m.p != next || m.asleep != "" || s.byPID[next.PID] != a.Child {
		t.Errorf("%+v %v", m, s.byPID)
	}
	for _, c := range exits {
		if id, mine := s.byPID[c.PID]; mine {
			t.Errorf("the end of run %d counts as that of child %d", c.PID, id)
		}
	}
	finder{s}.joined(&kernel.Process{PID: 4, UUID: types.NewUUID()}) // somebody else's
	if m.p != next || len(s.byPID) != 1 {
		t.Errorf("%+v %v", m, s.byPID)
	}
}
