package heartbeat

import (
	"math/rand/v2"
	"testing"
	"time"
)

const minute = time.Minute

// rig is a monitor with its clocks.
type rig struct {
	*Monitor[int]
	now Clock
}

func newRig(cfg Config) *rig {
	cfg.Interval = minute
	now := Clock{Wall: time.Unix(1000, 0)}
	return &rig{New[int](cfg, now), now}
}

// look lets time pass and looks at one process.
func (r *rig) look(pass time.Duration, b Beat[int]) Verdict {
	r.now.Mono += pass
	r.now.Wall = r.now.Wall.Add(pass)
	return r.Look(r.now, []Beat[int]{b}, func(int) bool { return true })[0]
}

func TestAProcessIsSuspectOncePerStall(t *testing.T) {
	r := newRig(Config{Policy: Warn})
	b := Beat[int]{ID: 1, Limit: 3 * minute}
	fresh := 0
	for i := range 10 {
		v := r.look(minute, b)
		if want := i >= 2; (v.Suspect != 0) != want || v.Fresh != (i == 2) {
			t.Errorf("after %d min: %+v", i+1, v)
		}
		if v.Fresh {
			fresh++
			if v.Act != Warn || v.Age != 3*minute {
				t.Errorf("%+v", v)
			}
		}
	}
	b.Last = r.now.Mono // it lives
	if v := r.look(minute, b); v.Suspect != 0 || !v.Over || v.Age != minute {
		t.Errorf("after progress: %+v", v)
	}
	for range 3 {
		if r.look(minute, b).Fresh {
			fresh++
		}
	}
	if fresh != 2 {
		t.Errorf("%d stalls, want 2", fresh)
	}
}

func TestWhoMayBeSilentIsNotSuspectAndHasAllItsTimeAfterwards(t *testing.T) {
	r := newRig(Config{Policy: Kill})
	b := Beat[int]{ID: 1, Limit: 3 * minute, Exempt: "paused"}
	for range 20 {
		if v := r.look(minute, b); v.Suspect != 0 || v.Exempt != "paused" || v.Act != "" {
			t.Fatalf("%+v", v)
		}
	}
	b.Exempt = ""
	for i := range 3 {
		if v := r.look(minute, b); (v.Suspect != 0) != (i == 2) {
			t.Errorf("%d min later: %+v", i+1, v)
		}
	}
	b.Exempt = "paused" // it was suspect
	if v := r.look(minute, b); v.Suspect != 0 || !v.Over {
		t.Errorf("%+v", v)
	}
}

func TestWithoutALimitNobodyIsSuspect(t *testing.T) {
	r := newRig(Config{Policy: Kill})
	for range 100 {
		if v := r.look(minute, Beat[int]{ID: 1}); v.Suspect != 0 {
			t.Fatalf("%+v", v)
		}
	}
}

func TestAHostThatHasSleptMakesNobodySuspect(t *testing.T) {
	for name, sleep := range map[string]func(*rig){
		"the clock on the wall went on":   func(r *rig) { r.now.Wall = r.now.Wall.Add(8 * time.Hour) },
		"both went on, and nobody looked": func(r *rig) { r.now.Mono += 8 * time.Hour; r.now.Wall = r.now.Wall.Add(8 * time.Hour) },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(Config{Policy: Kill})
			b := Beat[int]{ID: 1, Limit: 5 * minute}
			r.look(minute, b)
			r.look(minute, b)
			sleep(r)
			for i := range 6 {
				if v := r.look(minute, b); (v.Suspect != 0) != (i == 5) {
					t.Errorf("look %d after the sleep: %+v", i+1, v)
				}
			}
			if r.Naps() != 1 {
				t.Errorf("%d naps", r.Naps())
			}
		})
	}
}

func TestAClockThatIsSetBackMakesNoDifference(t *testing.T) {
	r := newRig(Config{Policy: Warn})
	b := Beat[int]{ID: 1, Limit: 3 * minute}
	r.look(minute, b)
	r.now.Wall = r.now.Wall.Add(-time.Hour)
	r.look(minute, b)
	if v := r.look(minute, b); v.Suspect == 0 || r.Naps() != 0 {
		t.Errorf("%+v, %d naps", v, r.Naps())
	}
}

func TestRestartsInOneStepAreBounded(t *testing.T) {
	r := newRig(Config{Policy: Restart, MaxRestarts: 2})
	b := Beat[int]{ID: 1, Limit: minute, Step: 4}
	var acts []Policy
	stall := func() {
		for !func() bool {
			v := r.look(minute, b)
			if v.Fresh {
				acts = append(acts, v.Act)
			}
			return v.Fresh
		}() {
		}
		r.Look(r.now, nil, func(int) bool { return true }) // it is not there for a moment
		b.Last = r.now.Mono                                // and goes on
		r.look(0, b)
	}
	for range 3 {
		stall()
	}
	b.Step = 5 // it has come further
	stall()
	want := []Policy{Restart, Restart, Warn, Restart}
	for i := range want {
		if i >= len(acts) || acts[i] != want[i] {
			t.Fatalf("%v, want %v", acts, want)
		}
	}
	r.Look(r.now, nil, func(int) bool { return false })
	if len(r.seen) != 0 {
		t.Errorf("%d are remembered", len(r.seen))
	}
}

// What is suspect has been silent for its limit, since it was last excused and since the host last slept; and it
// becomes so once.
func TestVerdictsHoldInRandomHistories(t *testing.T) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 1))
	for range 300 {
		g := newRig(Config{Policy: Warn})
		type proc struct {
			Beat[int]
			suspect bool
			quiet   time.Duration // since then it has had no excuse
		}
		procs := make([]proc, 4)
		for i := range procs {
			procs[i].Beat = Beat[int]{ID: i, Limit: time.Duration(r.IntN(6)) * minute}
		}
		for range 200 {
			pass := minute
			if r.IntN(40) == 0 {
				pass = time.Duration(4+r.IntN(100)) * minute // it slept
			}
			g.now.Mono += pass
			g.now.Wall = g.now.Wall.Add(pass)
			beats := make([]Beat[int], len(procs))
			for i := range procs {
				p := &procs[i]
				switch r.IntN(12) {
				case 0, 1:
					p.Last = g.now.Mono - time.Duration(r.Int64N(int64(minute)))
				case 2:
					p.Exempt = "excused"
				case 3, 4:
					p.Exempt = ""
				}
				if pass > patience*minute || p.Exempt != "" || p.Limit == 0 {
					p.quiet = g.now.Mono
				}
				beats[i] = p.Beat
			}
			for i, v := range g.Look(g.now, beats, func(int) bool { return false }) {
				p := &procs[i]
				want := p.Exempt == "" && p.Limit > 0 && g.now.Mono-max(p.Last, p.quiet) >= p.Limit
				if (v.Suspect != 0) != want || v.Fresh != (want && !p.suspect) || v.Over != (!want && p.suspect) {
					t.Fatalf("%+v: %+v, want suspect %t", p, v, want)
				}
				p.suspect = want
			}
		}
	}
}
