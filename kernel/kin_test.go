package kernel

import (
	"testing"

	"rnix/internal/recovery"
	"rnix/types"
)

// lastRun is what a later run of a history goes on from, as its records say.
func (s *sys) lastRun(id types.UUID) *From {
	s.t.Helper()
	state := new(recovery.State)
	r := s.stores.of(id)
	for i := range r.committed {
		r.committed[i].Seq = uint64(i + 1)
		state.Apply(&r.committed[i])
	}
	was, err := state.Was()
	if err != nil {
		s.t.Fatal(err)
	}
	rec, err := s.stores.Create(id)
	if err != nil {
		s.t.Fatal(err)
	}
	return &From{State: state, Rec: rec, Was: was}
}

// Who goes on without those above is as deep as it was, and in the family in which it was, whose limits hold for it.
func TestWhoGoesOnWithoutItsParentKeepsItsDepthAndItsFamily(t *testing.T) {
	s := newSys(t, func(c *Config) { c.Limits.Depth, c.Limits.SpawnRate = 3, 4 })
	s.model = untilKilled
	below := func(parent types.PID) (*Process, error) {
		pid, err := s.Spawn("x", nil, opts(func(o *SpawnOpts) { o.ParentPID = parent }))
		if err != nil {
			return nil, err
		}
		p, _ := s.Process(pid)
		return p, nil
	}
	must := func(p *Process, err error) *Process {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	top, _ := s.Process(s.spawn())
	a := must(below(top.PID))
	b := must(below(a.PID))
	c := must(below(a.PID))
	for _, p := range []*Process{c, b, a, top} {
		if err := s.Signal(p.PID, types.SIGKILL); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Wait(p.PID); err != nil {
			t.Fatal(err)
		}
	}
	again := func(p *Process) *Process {
		t.Helper()
		pid, err := s.Spawn("x", nil, opts(func(o *SpawnOpts) { o.UUID, o.From = p.UUID, s.lastRun(p.UUID) }))
		if err != nil {
			t.Fatal(err)
		}
		q, _ := s.Process(pid)
		return q
	}
	b2, c2, top2 := again(b), again(c), again(top)
	if b2.depth != 2 || c2.depth != 2 || top2.depth != 0 || b2.rel.family != c2.rel.family || b2.rel.family != top2.rel.family || !b2.rel.byAgent || top2.rel.byAgent {
		t.Errorf("depths %d %d %d", b2.depth, c2.depth, top2.depth)
	}
	d := must(below(b2.PID))
	if _, err := below(d.PID); types.CodeOf(err) != types.ErrExhausted {
		t.Errorf("deeper than the limit: %v", err)
	}
	for n, p := range []*Process{c2, top2, b2, c2} { // 4 within a minute, of all of them
		if _, err := below(p.PID); (err == nil) != (n < 3) {
			t.Errorf("birth %d: %v", n+2, err)
		}
	}
	for _, pid := range []types.PID{top2.PID, b2.PID, c2.PID} {
		if _, err := s.SignalTree(pid, types.SIGKILL); err != nil {
			t.Fatal(err)
		}
	}
	for _, p := range s.table.all() {
		_, _ = s.Wait(p.PID)
	}
	s.table.mu.Lock()
	defer s.table.mu.Unlock()
	if len(s.table.byUUID) > 0 || len(s.table.families) > 0 {
		t.Errorf("left: %d processes, %d families", len(s.table.byUUID), len(s.table.families))
	}
}
