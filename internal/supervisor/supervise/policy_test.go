package supervise

import (
	"math"
	"testing"
	"time"
)

var t0 = time.Unix(1000, 0).UTC()

// settle does what the policy wants at a time, with children that start well and end when they are
// asked to. It returns what it did, in short.
func settle(p *Policy, now time.Time) string {
	out := ""
	for {
		a := p.Next(now)
		switch a.Do {
		case Wait:
			return out
		case End:
			return out + "end"
		case Start:
			p.Started(a.Child, now)
			out += "+"
		case Term, Kill:
			p.Exited(a.Child, false)
			out += "-"
		case Decide:
			continue
		}
		out += string(rune('a' + a.Child))
	}
}

func children(n int, c Child) []Child {
	out := make([]Child, n)
	for i := range out {
		out[i] = c
	}
	return out
}

func TestAsManyRestartsAsAreAllowedAndNotOneMore(t *testing.T) {
	for _, c := range []struct {
		name  string
		most  int
		gap   time.Duration
		exits int // the one with which it gives up; 0 = never
	}{
		{"none allowed", 0, time.Second, 1},
		{"one allowed", 1, time.Second, 2},
		{"three allowed, all at once", 3, 0, 4},
		{"three allowed, the first as old as the period", 3, 20 * time.Second, 4},
		{"three allowed, the first older than the period", 3, 20*time.Second + 1, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := New(Spec{Strategy: OneForOne, MaxRestarts: c.most, Period: time.Minute, Children: children(1, Child{Restart: Permanent, Shutdown: time.Second})})
			now := t0
			settle(p, now)
			for i := 1; i <= 20; i++ {
				p.Exited(0, true)
				got := settle(p, now)
				if gone := i == c.exits; (got == "end") != gone || !gone && got != "+a" {
					t.Fatalf("exit %d: %q", i, got)
				} else if gone {
					if p.Outcome() != (Outcome{Cause: GaveUp}) {
						t.Errorf("%+v", p.Outcome())
					}
					return
				}
				now = now.Add(c.gap)
			}
			if c.exits != 0 {
				t.Error("it did not give up")
			}
		})
	}
}

func TestOneRestartOfManyChildrenCountsOnce(t *testing.T) {
	p := New(Spec{Strategy: OneForAll, MaxRestarts: 1, Period: time.Minute, Children: children(3, Child{Restart: Permanent, Shutdown: time.Second})})
	settle(p, t0)
	p.Exited(1, true)
	if got := settle(p, t0); got != "-c-a+a+b+c" {
		t.Errorf("the first: %s", got)
	}
	p.Exited(1, true)
	if got := settle(p, t0); got != "-c-aend" {
		t.Errorf("the second: %s", got)
	}
}

func TestBackoffGrowsToItsLimit(t *testing.T) {
	b := Backoff{Initial: time.Second, Factor: 2, Max: 5 * time.Second}
	for n, want := range []time.Duration{1: time.Second, 2: 2 * time.Second, 3: 4 * time.Second, 4: 5 * time.Second, 5: 5 * time.Second} {
		if n > 0 && b.After(n) != want {
			t.Errorf("start %d after %s, want %s", n, b.After(n), want)
		}
	}
	if d := (Backoff{Initial: time.Second}).After(9); d != time.Second {
		t.Errorf("without a factor: %s", d)
	}
	if d := (Backoff{Initial: time.Hour, Factor: 10}).After(5000); d != math.MaxInt64 {
		t.Errorf("without a limit: %s", d)
	}
	if d := (Backoff{}).After(3); d != 0 {
		t.Errorf("none: %s", d)
	}
}

func TestDelayStartsAnewAfterALongLife(t *testing.T) {
	c := Child{Restart: Permanent, Shutdown: time.Second, Backoff: Backoff{Initial: time.Second, Factor: 2}}
	p := New(Spec{Strategy: OneForOne, MaxRestarts: 9, Period: time.Minute, Children: []Child{c}})
	now := t0
	for i, life := range []time.Duration{0, 0, time.Minute + 1, 0} {
		settle(p, now)
		now = now.Add(life)
		p.Exited(0, true)
		want := []time.Duration{time.Second, 2 * time.Second, time.Second, 2 * time.Second}[i]
		if a := p.Next(now); a.Do != Decide || !a.Until.Equal(now.Add(want)) {
			t.Fatalf("end %d: %s until %s, want a delay of %s", i, a.Do, a.Until.Sub(now), want)
		}
		a := p.Next(now)
		if a.Do != Wait || !a.Until.Equal(now.Add(want)) {
			t.Fatalf("end %d: %s until %s, want a delay of %s", i, a.Do, a.Until.Sub(now), want)
		}
		now = a.Until
	}
}

func TestTimesOfTheMomentAreKeptOnly(t *testing.T) {
	p := New(Spec{Strategy: OneForOne, MaxRestarts: 2, Period: time.Second, Children: children(1, Child{Restart: Permanent, Shutdown: time.Second})})
	now := t0
	settle(p, now)
	for range 10_000 {
		now = now.Add(time.Second)
		p.Exited(0, true)
		if got := settle(p, now); got != "+a" {
			t.Fatal(got)
		}
	}
	if len(p.restarts) > 2 || len(p.mail) > 0 || len(p.kids) != 1 {
		t.Errorf("after 10000 restarts: %d times, %d facts, %d children", len(p.restarts), len(p.mail), len(p.kids))
	}
}
