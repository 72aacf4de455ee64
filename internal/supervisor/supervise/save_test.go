package supervise

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// whole reports whether all that a policy knows is saved: nobody is being asked to end, nobody is being added, and
// there is no news to tell of.
func whole(p *Policy) bool {
	return len(p.news) == 0 && !p.over && (p.job == nil || p.job.kind != adding) &&
		!slices.ContainsFunc(p.mail, func(f fact) bool { return f.kind == add }) &&
		!slices.ContainsFunc(p.kids, func(k *kid) bool { return k.state == Stopping })
}

// reborn is a policy after a crash that nobody but itself has noticed.
func reborn(w *world, spec Spec, p *Policy) *Policy {
	b, err := json.Marshal(Save(p))
	if err != nil {
		panic(err)
	}
	var s Saved
	if err := json.Unmarshal(b, &s); err != nil {
		panic(err)
	}
	q, err := Restore(spec, s, w.time())
	if err != nil {
		panic(err)
	}
	for _, k := range q.Children() {
		if k.State == Starting {
			if w.alive[k.ID] == nil {
				panic("a child without a run is saved as one with")
			}
			q.Adopted(k.ID)
		}
	}
	return q
}

func TestAPolicyThatIsSavedAndRestoredDecidesAsOneThatIsNot(t *testing.T) {
	t.Logf("seeds from %d", *seedFlag)
	crashes, all := 0, histories(t)
	for i := range uint64(all / 4) {
		seed := *seedFlag + i
		spec := randomSpec(seed)
		r := rand.New(rand.NewPCG(seed, 99))
		got := play(newWorld(seed, spec), spec, func() bool {
			now := r.IntN(4) == 0
			if now {
				crashes++
			}
			return now
		})
		if want := play(newWorld(seed, spec), spec, nil); !slices.Equal(got, want) {
			t.Fatalf("seed %d, %+v\nwith crashes\n  %s\nwithout\n  %s", seed, spec, strings.Join(got, "\n  "), strings.Join(want, "\n  "))
		}
	}
	if crashes < all*3/4 {
		t.Errorf("only %d crashes in %d histories", crashes, all/4)
	}
}

func TestAChildThatWasAboutToBeStartedIsStartedOnceAndFirst(t *testing.T) {
	begin := time.Unix(100, 0)
	for name, c := range map[string]struct {
		spec  Spec
		until func(p *Policy) ID // runs a policy up to a Start that never was
		want  string
	}{
		"in the beginning": {Spec{Strategy: OneForOne, Children: []Child{{Restart: Permanent}, {Restart: Permanent}}},
			func(p *Policy) ID { return p.Next(begin).Child }, "start 0 start 1 wait"},
		"the last one in the beginning": {Spec{Strategy: OneForOne, Children: []Child{{Restart: Permanent}, {Restart: Permanent}}},
			func(p *Policy) ID { p.Next(begin); p.Started(0, begin); return p.Next(begin).Child }, "start 1 wait"},
		"in a restart of all": {Spec{Strategy: OneForAll, MaxRestarts: 1, Period: time.Hour, Children: []Child{{Restart: Permanent}, {Restart: Permanent}}},
			func(p *Policy) ID {
				for id := range ID(2) {
					p.Next(begin)
					p.Started(id, begin)
				}
				p.Exited(1, true)
				p.Next(begin) // decide
				p.Next(begin) // term 0
				p.Exited(0, false)
				return p.Next(begin).Child
			}, "start 0 start 1 wait"},
	} {
		t.Run(name, func(t *testing.T) {
			p := New(c.spec)
			id := c.until(p)
			q, err := Restore(c.spec, Save(p), begin)
			if err != nil {
				t.Fatal(err)
			}
			for _, k := range q.Children() {
				if k.State == Starting && k.ID != id {
					q.Adopted(k.ID)
				}
			}
			q.Unstarted(id)
			var did []string
			for {
				a := q.Next(begin)
				did = append(did, a.Do.String())
				if a.Do != Start {
					break
				}
				did[len(did)-1] += " " + string(rune('0'+a.Child))
				q.Started(a.Child, begin)
			}
			if got := strings.Join(did, " "); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

func TestWhatWasBeingStoppedIsStoppedAgain(t *testing.T) {
	now := time.Unix(100, 0)
	spec := Spec{Strategy: OneForOne, Children: []Child{{Restart: Permanent, Shutdown: time.Second}, {Restart: Permanent, Shutdown: time.Second}}}
	p := New(spec)
	for id := range ID(2) {
		p.Next(now)
		p.Started(id, now)
	}
	p.Stop()
	if a := p.Next(now); a.Do != Term || a.Child != 1 {
		t.Fatalf("%+v", a)
	}
	q, err := Restore(spec, Save(p), now)
	if err != nil {
		t.Fatal(err)
	}
	q.Adopted(0)
	q.Adopted(1)
	if a := q.Next(now); a.Do != Term || a.Child != 1 {
		t.Errorf("%+v", a)
	}
	q.Exited(1, true)
	if a := q.Next(now); a.Do != Term || a.Child != 0 {
		t.Errorf("%+v", a)
	}
	q.Exited(0, true)
	if a := q.Next(now); a.Do != End || q.Outcome().Cause != Asked {
		t.Errorf("%+v %+v", a, q.Outcome())
	}
}

func TestAnAddedChildOfWhichNobodyWasToldIsForgotten(t *testing.T) {
	now := time.Unix(100, 0)
	spec := Spec{Strategy: SimpleOneForOne, Children: []Child{{Restart: Permanent}}}
	p := New(spec)
	p.Add()
	if s := Save(p); len(s.Children) != 0 || s.Next != 1 {
		t.Errorf("before its turn: %+v", s)
	}
	if a := p.Next(now); a.Do != Start {
		t.Fatalf("%+v", a)
	}
	q, err := Restore(spec, Save(p), now)
	if err != nil {
		t.Fatal(err)
	}
	q.Unstarted(0)
	if a := q.Next(now); a.Do != Wait || len(q.Children()) != 0 {
		t.Errorf("%+v, %+v", a, q.Children())
	}
}

func TestRestoreRefusesWhatIsNotOfItsSpec(t *testing.T) {
	spec := Spec{Strategy: OneForOne, Children: []Child{{}}}
	for _, s := range []Saved{
		{Next: 2, Children: []SavedKid{{ID: 1, State: up}}},
		{Next: 1, Children: []SavedKid{{ID: -1, State: up}}},
		{Next: 1, Children: []SavedKid{{ID: 0, State: up}, {ID: 0, State: up}}},
		{Next: 1, Children: []SavedKid{{ID: 0, State: "asleep"}}},
	} {
		if _, err := Restore(spec, s, time.Unix(1, 0)); err == nil {
			t.Errorf("%+v is taken", s)
		}
	}
}

func TestTimesOfAClockThatWasSetBackAreNow(t *testing.T) {
	now := time.Unix(100, 0)
	spec := Spec{Strategy: OneForOne, MaxRestarts: 1, Period: time.Minute, Children: []Child{{Restart: Permanent}}}
	p, err := Restore(spec, Saved{Next: 1, Restarts: []time.Time{now.Add(time.Hour)}, Children: []SavedKid{{State: up, Since: now.Add(time.Hour)}}}, now)
	if err != nil || !reflect.DeepEqual([]time.Time(p.restarts), []time.Time{now}) {
		t.Errorf("%v %v", p, err)
	}
}

func TestAPlannedRestartIsNotCounted(t *testing.T) {
	now := time.Unix(100, 0)
	day := Child{Restart: Permanent, Backoff: Backoff{Initial: 24 * time.Hour}}
	spec := Spec{Strategy: OneForOne, MaxRestarts: 1, Period: time.Minute, Children: []Child{day, day, day, {Restart: Permanent}}}
	p := New(spec)
	for id := range ID(4) {
		p.Next(now)
		p.Started(id, now)
	}
	for id := range ID(3) {
		p.Exited(id, true)
	}
	for range 3 {
		if a := p.Next(now); a.Do != Decide || a.Count != 0 || !a.Until.Equal(now.Add(24*time.Hour)) {
			t.Errorf("%+v", a)
		}
	}
	p.Exited(3, true)
	if a := p.Next(now); a.Do != Decide || a.Count != 1 {
		t.Errorf("%+v", a)
	}
}
