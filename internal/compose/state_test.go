package compose

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"pgregory.net/rapid"

	"rnix/types"
)

// sim runs a plan with outcomes that depend on the instance and the attempt and on nothing else.
type sim struct {
	t       *rapid.T
	s       *State
	now     time.Time
	notes   map[string]json.RawMessage
	log     []string // keys, in the order of the notes
	texts   []json.RawMessage
	running map[Key]time.Time // when the attempt ends
	parked  map[Key]time.Time // when it goes on
	starts  map[string]int    // by key and attempt
	ended   map[Key]Phase
	most    int
	outcome func(k Key, attempt int) Kind // empty = it succeeds
	took    func(k Key, attempt int) time.Duration
	parks   func(k Key, attempt int) bool
	items   func(node string) (int, bool)
}

func (x *sim) note(k Key, n Note) {
	b, err := json.Marshal(n)
	if err != nil {
		x.t.Fatal(err)
	}
	x.notes[k.String()] = b
	x.log, x.texts = append(x.log, k.String()), append(x.texts, b)
	x.s.Apply(k, n)
	if n.Phase.Final() && k.Index < 0 || n.Phase == Succeeded {
		x.ended[k] = n.Phase
	}
}

// run goes on until the run ends. It does what a body does: notes before effects.
func (x *sim) run() {
	for range 100_000 {
		acts := x.s.Next(x.now)
		for _, a := range acts {
			switch a.Do {
			case Start:
				x.begin(a.Key, x.s.Began(a.Key, types.NewUUID(), x.now))
			case Expand:
				n, ok := x.items(a.Key.Node)
				if !ok {
					x.note(a.Key, Note{Round: x.s.Round(), Phase: Failed, Kind: BadOutput, Why: "no list", At: x.now})
					continue
				}
				items := make([]any, n)
				for i := range items {
					items[i] = fmt.Sprint("item ", i)
				}
				x.note(a.Key, Note{Round: x.s.Round(), Phase: Expanded, Items: items, At: x.now})
			case Skip:
				x.note(a.Key, Note{Round: x.s.Round(), Phase: Skipped, Why: a.Why, At: x.now})
			case Wait:
				x.wait(a.Until)
			case Suspend:
				if len(x.parked) == 0 {
					x.t.Fatalf("suspended for %q, and nothing is", a.Why)
				}
				x.wait(time.Time{})
			case End:
				return
			}
		}
	}
	x.t.Fatal("the run does not end")
}

func (x *sim) begin(k Key, n Note) {
	id := fmt.Sprint(k, " attempt ", n.Attempt)
	if x.starts[id]++; x.starts[id] > 1 {
		x.t.Fatalf("%s was started twice", id)
	}
	node := x.s.plan.File.Agents[k.Node]
	for _, up := range node.Above() {
		c, _ := node.Needs(up)
		p := x.s.Phase(up)
		if !p.Final() || c == OnSucceeded && p != Succeeded || c == OnFailed && p != Failed {
			x.t.Fatalf("%s has started, and %s is %s", k, up, p)
		}
	}
	x.note(k, n)
	x.launch(k, n.Attempt)
}

func (x *sim) launch(k Key, attempt int) {
	x.running[k] = x.now.Add(x.took(k, attempt))
	x.most = max(x.most, len(x.running))
	if x.parks(k, attempt) {
		x.s.Park(k, "a quota", x.running[k])
		x.parked[k] = x.running[k].Add(time.Second)
		delete(x.running, k)
	}
}

// wait lets time pass until the next thing happens.
func (x *sim) wait(until time.Time) {
	next := until
	for _, at := range x.running {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	for _, at := range x.parked {
		if next.IsZero() || at.Before(next) {
			next = at
		}
	}
	if next.IsZero() {
		x.t.Fatal("it waits, and nothing can happen")
	}
	if next.After(x.now) {
		x.now = next
	}
	for _, k := range slices.SortedFunc(maps.Keys(x.parked), byKey) {
		if !x.parked[k].After(x.now) {
			x.s.Unpark(k)
			delete(x.parked, k)
			x.running[k] = x.now
		}
	}
	for _, k := range slices.SortedFunc(maps.Keys(x.running), byKey) {
		if !x.running[k].After(x.now) {
			delete(x.running, k)
			n, _ := x.s.Latest(k)
			kind := x.outcome(k, n.Attempt)
			x.note(k, x.s.Over(k, Outcome{Kind: kind, Why: string(kind)}, x.now))
		}
	}
}

func byKey(a, b Key) int { return strings.Compare(a.String(), b.String()) }

// phases is what became of each instance.
func phases(s *State) map[string]Phase {
	out := map[string]Phase{}
	for _, st := range s.Report() {
		out[st.Key.String()] = st.Phase
	}
	return out
}

// drawFile draws a workflow without circles.
func drawFile(t *rapid.T) *File {
	f := &File{Agents: map[string]*Node{}, MaxParallel: rapid.IntRange(1, 6).Draw(t, "width")}
	n := rapid.IntRange(1, 8).Draw(t, "nodes")
	for i := range n {
		node := &Node{Intent: "x", Line: i + 1}
		for j := range i {
			if rapid.IntRange(0, 3).Draw(t, "edge") == 0 {
				if node.DependsOn == nil {
					node.DependsOn = &Depends{On: map[string]Condition{}}
				}
				node.DependsOn.On[fmt.Sprint("n", j)] = rapid.SampledFrom([]Condition{OnSucceeded, OnSucceeded, OnSucceeded, OnCompleted, OnFailed}).Draw(t, "condition")
			}
		}
		if rapid.IntRange(0, 3).Draw(t, "fan") == 0 {
			node.ForEach = &ForEach{Files: "*"}
		}
		if rapid.Bool().Draw(t, "retries") {
			node.Retries = &Retries{Max: rapid.IntRange(0, 3).Draw(t, "max")}
			if rapid.Bool().Draw(t, "some kinds") {
				node.Retries.On = []Kind{TimedOut}
			}
		}
		f.Agents[fmt.Sprint("n", i)] = node
	}
	return f
}

func drawSim(t *rapid.T, f *File, notes map[string]json.RawMessage, rounds []Redo) *sim {
	seed := rapid.Uint64().Draw(t, "seed")
	roll := func(k Key, attempt int, what string, n uint64) uint64 {
		h := seed
		for _, c := range fmt.Sprint(k, attempt, what) {
			h = (h ^ uint64(c)) * 1099511628211
		}
		return (h >> 20) % n
	}
	x := &sim{t: t, now: time.Unix(1000, 0), notes: map[string]json.RawMessage{}, running: map[Key]time.Time{}, parked: map[Key]time.Time{},
		starts: map[string]int{}, ended: map[Key]Phase{}}
	x.outcome = func(k Key, attempt int) Kind {
		return []Kind{"", "", "", Error, TimedOut, BadOutput}[roll(k, attempt, "end", 6)]
	}
	x.took = func(k Key, attempt int) time.Duration {
		return time.Duration(1+roll(k, attempt, "took", 20)) * time.Second
	}
	x.parks = func(k Key, attempt int) bool { return roll(k, attempt, "parks", 6) == 0 }
	x.items = func(node string) (int, bool) {
		k := Key{node, -1}
		return int(roll(k, 0, "items", 5)), roll(k, 0, "list", 8) > 0
	}
	s, err := NewState(f.Plan(), rounds, notes)
	if err != nil {
		t.Fatal(err)
	}
	x.s = s
	return x
}

func TestEveryNodeEndsOnceWhateverHappens(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		x := drawSim(t, f, nil, nil)
		x.run()
		if x.most > f.MaxParallel {
			t.Fatalf("%d ran at once, and %d may", x.most, f.MaxParallel)
		}
		for _, st := range x.s.Report() {
			if !st.Phase.Final() {
				t.Fatalf("%s is %s at the end", st.Key, st.Phase)
			}
		}
		for name, n := range f.Agents {
			ready := true
			for _, up := range n.Above() {
				c, _ := n.Needs(up)
				p := x.s.Phase(up)
				ready = ready && (c == OnCompleted || c == OnSucceeded && p == Succeeded || c == OnFailed && p == Failed)
			}
			if ready == (x.s.Phase(name) == Skipped) {
				t.Fatalf("%s is %s, and its conditions hold: %v", name, x.s.Phase(name), ready)
			}
		}
		if _, ok := Summary(x.s.Report()); ok == slices.Contains(slices.Collect(maps.Values(phases(x.s))), Failed) {
			t.Fatal("a run is well if and only if nothing has failed")
		}
	})
}

// TestReadyNodesStartAtOnce checks that nothing waits for anything but what it names: whenever the run
// waits, each node whose conditions hold has started, unless all places are taken.
func TestReadyNodesStartAtOnce(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		f.MaxParallel = MaxParallel
		x := drawSim(t, f, nil, nil)
		x.parks = func(Key, int) bool { return false }
		wait := x.took
		x.took = func(k Key, attempt int) time.Duration {
			for i := range x.s.nodes {
				n := &x.s.nodes[i]
				if ready, _ := x.s.ready(n); ready && n.phase == Waiting && n.node.ForEach == nil && n.inst[0].phase == Waiting && !upJustEnded(x, n) {
					t.Fatalf("%s is ready and has not started", n.name)
				}
			}
			return wait(k, attempt)
		}
		x.run()
	})
}

// upJustEnded reports whether a node became ready in the moment that is being handled.
func upJustEnded(x *sim, n *nodeState) bool {
	if len(n.node.Above()) == 0 {
		return x.now.Equal(time.Unix(1000, 0))
	}
	for _, up := range n.node.Above() {
		for _, g := range x.s.Results(up) {
			if note, ok := x.s.Latest(g.Key); ok && note.At.Equal(x.now) {
				return true
			}
		}
		if note, ok := x.s.Latest(Key{up, -1}); ok && note.At.Equal(x.now) {
			return true
		}
	}
	return false
}

func TestARunGoesOnFromAnyMomentToTheSameEnd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		x := drawSim(t, f, nil, nil)
		x.run()
		want := phases(x.s)
		at := rapid.IntRange(0, len(x.log)).Draw(t, "crash after")
		notes := map[string]json.RawMessage{}
		for i := range at {
			notes[x.log[i]] = x.texts[i]
		}
		y := &sim{}
		*y = *x
		y.notes, y.running, y.parked, y.starts, y.ended = maps.Clone(notes), map[Key]time.Time{}, map[Key]time.Time{}, map[string]int{}, map[Key]Phase{}
		var err error
		if y.s, err = NewState(f.Plan(), nil, notes); err != nil {
			t.Fatal(err)
		}
		for k := range y.s.Live() { // what a body finds: it was started, and goes on
			n, _ := y.s.Latest(k)
			y.starts[fmt.Sprint(k, " attempt ", n.Attempt)]++
			y.launch(k, n.Attempt)
		}
		before := phases(y.s)
		y.run()
		if got := phases(y.s); !maps.Equal(got, want) {
			t.Fatalf("without a crash %v, with one after %d notes %v", want, at, got)
		}
		for k, p := range before {
			if p == Succeeded && y.starts[k+" attempt 1"]+y.starts[k+" attempt 2"]+y.starts[k+" attempt 3"]+y.starts[k+" attempt 4"] > 0 {
				t.Fatalf("%s had succeeded and was started again", k)
			}
		}
	})
}

func TestALaterRoundDoesAgainWhatFailedAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := drawFile(t)
		x := drawSim(t, f, nil, nil)
		x.run()
		first := phases(x.s)
		y := drawSim(t, f, x.notes, []Redo{{}})
		y.outcome = func(Key, int) Kind { return "" }
		y.items = func(string) (int, bool) { return 2, true }
		started := map[Key]bool{}
		took := y.took
		y.took = func(k Key, attempt int) time.Duration { started[k] = true; return took(k, attempt) }
		y.run()
		for k := range started {
			if first[k.String()] == Succeeded {
				t.Fatalf("%s had succeeded and was done again", k)
			}
		}
		for k, p := range phases(y.s) {
			if p == Failed {
				t.Fatalf("%s has failed again, and nothing fails", k)
			}
		}
		node := rapid.SampledFrom(f.Plan().Order).Draw(t, "node")
		if y.s.MayRedo(node, func(types.UUID) bool { return false }) != nil {
			return
		}
		second := phases(y.s)
		z := drawSim(t, f, mergeNotes(x.notes, y.notes), []Redo{{}, {Node: node}})
		again := map[string]bool{}
		z.took = func(k Key, attempt int) time.Duration { again[k.Node] = true; return time.Second }
		z.outcome = func(Key, int) Kind { return "" }
		z.run()
		below := f.Plan().From(node)
		for n := range again {
			if !below[n] {
				t.Fatalf("%s is not below %s and was done again", n, node)
			}
		}
		for k, p := range phases(z.s) {
			if key, _ := ParseKey(k); !below[key.Node] && second[k] != p {
				t.Fatalf("%s was %s and is %s", k, second[k], p)
			}
		}
	})
}

func mergeNotes(a, b map[string]json.RawMessage) map[string]json.RawMessage {
	out := maps.Clone(a)
	maps.Copy(out, b)
	return out
}

func TestAKilledAttemptOfAnEarlierRoundIsDoneAgain(t *testing.T) {
	p := plan(t, "agents:\n  a: {intent: x}\n")
	id := types.NewUUID()
	k := Key{"a", -1}
	b, _ := json.Marshal(Note{Phase: Running, Attempt: 1, First: 1, UUID: id})
	s, err := NewState(p, []Redo{{}}, map[string]json.RawMessage{"a": b})
	if err != nil || s.Live()[k] != id {
		t.Fatalf("%v %v", s.Live(), err)
	}
	s.Apply(k, s.Over(k, Outcome{Kind: Cancelled, Why: "killed"}, time.Now()))
	acts := s.Next(time.Now())
	if len(acts) != 1 || acts[0].Do != Start {
		t.Fatalf("%+v", acts)
	}
	if n := s.Began(k, types.NewUUID(), time.Now()); n.Attempt != 2 || n.First != 2 || n.Round != 1 {
		t.Errorf("%+v", n)
	}
	s, _ = NewState(p, nil, map[string]json.RawMessage{"a": b})
	s.Apply(k, s.Over(k, Outcome{Kind: Cancelled, Why: "killed"}, time.Now()))
	if s.Phase("a") != Failed {
		t.Error("what somebody kills in its own round has failed")
	}
}

func TestASuspendedNodeIsNoFailure(t *testing.T) {
	p := plan(t, "agents:\n  a: {intent: x}\n  b: {intent: x, depends_on: [a]}\n  c: {intent: x}\n")
	s, err := NewState(p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	now := time.Unix(5, 0)
	a, c := Key{"a", -1}, Key{"c", -1}
	for _, k := range []Key{a, c} {
		s.Apply(k, s.Began(k, types.NewUUID(), now))
	}
	wake := now.Add(time.Minute)
	s.Park(a, "quota", wake)
	if acts := s.Next(now); acts[0].Do != Wait {
		t.Errorf("c still runs: %+v", acts)
	}
	s.Apply(c, s.Over(c, Outcome{}, now))
	acts := s.Next(now)
	if acts[0].Do != Suspend || !acts[0].Until.Equal(wake) || !strings.Contains(acts[0].Why, "a (quota)") {
		t.Errorf("%+v", acts)
	}
	s.Unpark(a)
	s.Apply(a, s.Over(a, Outcome{}, wake))
	if acts := s.Next(wake); acts[0].Do != Start || acts[0].Key.Node != "b" {
		t.Errorf("%+v", acts)
	}
}

func TestKeysReadBack(t *testing.T) {
	for _, k := range []Key{{"a", -1}, {"a-b_c", 0}, {"a", 17}} {
		if got, ok := ParseKey(k.String()); !ok || got != k {
			t.Errorf("%v %v", got, ok)
		}
	}
	for _, bad := range []string{"", "a[", "a[x]", "a[-1]", "[1]", "a]"} {
		if k, ok := ParseKey(bad); ok && bad != "a]" {
			t.Errorf("%q is %v", bad, k)
		}
	}
}

func TestALabelIsOneShortLine(t *testing.T) {
	for want, item := range map[string]any{"docs/a b.md": "docs/a b.md", "two lines": " two\r\n\tlines ", `{"n":1}`: map[string]any{"n": 1}, strings.Repeat("x", maxLabel) + "...": strings.Repeat("x", 1000)} {
		if got := Label(item); got != want {
			t.Errorf("%v is %q, want %q", item, got, want)
		}
	}
	if got := Label(strings.Repeat("ä", 1000)); len(got) > maxLabel+3 || !utf8.ValidString(got) {
		t.Errorf("%d bytes: %q", len(got), got)
	}
}

func TestWhatWasRefusedIsNotTriedAgain(t *testing.T) {
	p := plan(t, "agents:\n  a: {intent: x, retries: {max: 3}}\n  b: {intent: y, depends_on: [a]}\n  c: {intent: z, depends_on: {a: failed}}\n")
	k := Key{"a", -1}
	b, err := json.Marshal(Note{Phase: Running, Attempt: 1, First: 1, UUID: types.NewUUID()})
	if err != nil {
		t.Fatal(err)
	}
	for kind, want := range map[Kind]Phase{Error: Retrying, Refused: Failed} {
		s, err := NewState(p, nil, map[string]json.RawMessage{"a": b})
		if err != nil {
			t.Fatal(err)
		}
		s.Apply(k, s.Over(k, Outcome{Kind: kind, Why: "refused"}, time.Now()))
		if in := s.Report(); in[0].Phase != want {
			t.Errorf("%s: %+v, want %s", kind, in[0], want)
		}
		if kind == Refused {
			if acts := s.Next(time.Now()); len(acts) != 2 || acts[0].Key.Node != "b" || acts[0].Do == Start || acts[1].Key.Node != "c" || acts[1].Do != Start {
				t.Errorf("what depends on it: %+v", acts)
			}
		}
	}
}
