package recovery

import (
	"encoding/json"
	"iter"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	rnixctx "rnix/context"
	"rnix/internal/recovery/recoverytest"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/types"
)

// source yields records as a journal does.
func source(recs []step.Record) Source {
	return func(from uint64) iter.Seq2[step.Record, error] {
		return func(yield func(step.Record, error) bool) {
			for _, r := range recs {
				if r.Seq >= from && !yield(r, nil) {
					return
				}
			}
		}
	}
}

// damaged yields records and then what a journal says of a broken line.
func damaged(recs []step.Record) Source {
	return func(from uint64) iter.Seq2[step.Record, error] {
		return func(yield func(step.Record, error) bool) {
			for r := range source(recs)(from) {
				if !yield(r, nil) {
					return
				}
			}
			yield(step.Record{}, types.Errorf(types.ErrStorage, "Replay", "steps.jsonl", "line %d is broken", len(recs)+1))
		}
	}
}

// image is everything that a state says, in a form that can be compared byte by byte: what the model and
// its provider wrote stands in it as the next prompt would have it.
func image(t tb, s *State) string {
	t.Helper()
	var b strings.Builder
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	must(t, enc.Encode(struct {
		*State
		Messages []rnixctx.Message
		Began    time.Time
	}{s, append([]rnixctx.Message{}, s.Messages...), s.Began}))
	return strings.ReplaceAll(b.String(), `,"`, ",\n\"")
}

// diff is cmp.Diff for texts that are mostly equal.
func diff(want, got string) string {
	if want == got {
		return ""
	}
	return cmp.Diff(want, got)
}

func folded(recs []step.Record) *State {
	s := new(State)
	for i := range recs {
		s.Apply(&recs[i])
	}
	return s
}

// property checks a promise over histories at random.
func property(t *testing.T, steps int, check func(rt *rapid.T, s *stored)) {
	rapid.Check(t, func(rt *rapid.T) {
		o := recoverytest.Options{Steps: rapid.IntRange(1, steps).Draw(rt, "steps"), NoAnswers: rapid.IntRange(0, 3).Draw(rt, "kind") == 3}
		check(rt, write(t, rapid.Uint64().Draw(rt, "seed"), o))
	})
}

// through sends a checkpoint through its file.
func through(t tb, s *stored, state *State) *step.Checkpoint {
	t.Helper()
	cp, err := state.Checkpoint(s.id)
	must(t, err, step.WriteCheckpoint(s.fs, s.dir, cp))
	cp, err = step.ReadCheckpoint(s.fs, s.dir)
	must(t, err)
	return cp
}

func TestACheckpointIsOnlyAShortcut(t *testing.T) {
	stride := soak.Pick(t, "records from one checkpoint to the next", 5, 1)
	property(t, 4, func(rt *rapid.T, s *stored) {
		whole, at := image(rt, folded(s.onDisk)), rapid.IntRange(0, stride-1).Draw(rt, "first checkpoint")
		read, live := new(State), new(State)
		for i := range s.onDisk {
			read.Apply(&s.onDisk[i])
			live.Apply(&s.given[i]) // as the writer gets it, with what it leaves out on disk
			if d := diff(image(rt, read), image(rt, live)); d != "" {
				rt.Fatal("what is written folds into another state than what is read, at record", i+1, d)
			}
			if i%stride != at {
				continue
			}
			got, used, damage, err := Read(source(s.onDisk), through(rt, s, live))
			must(rt, err)
			if !used || damage != "" {
				rt.Fatal("record", i+1, "used", used, "damage", damage)
			}
			if d := diff(whole, image(rt, got)); d != "" {
				rt.Fatal("with a checkpoint at record", i+1, d)
			}
		}
	})
}

func TestACheckpointOfAnotherFutureIsLeftAside(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		k := rapid.IntRange(1, len(s.onDisk)).Draw(rt, "k")
		other := slices.Clone(s.onDisk[:k])
		other[k-1].Time = other[k-1].Time.Add(time.Nanosecond)
		for name, src := range map[string]Source{"the record is another": source(s.onDisk), "the record is gone": source(s.onDisk[:k-1])} {
			want := s.onDisk
			if name == "the record is gone" {
				want = s.onDisk[:k-1]
			}
			got, used, _, err := Read(src, through(rt, s, folded(other)))
			must(rt, err)
			if used {
				rt.Fatal(name, "but the checkpoint was used")
			}
			if d := cmp.Diff(image(rt, folded(want)), image(rt, got)); d != "" {
				rt.Fatal(name, d)
			}
		}
	})
}

func TestDamageKeepsTheStateBeforeIt(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		k := rapid.IntRange(1, len(s.onDisk)).Draw(rt, "k")
		at := rapid.IntRange(1, len(s.onDisk)).Draw(rt, "checkpoint")
		for _, cp := range []*step.Checkpoint{nil, through(rt, s, folded(s.onDisk[:at]))} {
			got, used, damage, err := Read(damaged(s.onDisk[:k]), cp)
			must(rt, err)
			if damage == "" || used != (cp != nil && at <= k) {
				rt.Fatal("damage", damage, "used", used, at, k)
			}
			if d := cmp.Diff(image(rt, folded(s.onDisk[:k])), image(rt, got)); d != "" {
				rt.Fatal(d)
			}
		}
	})
}

func TestEveryPrefixHasALegalConversation(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		state := new(State)
		for i := range s.onDisk {
			state.Apply(&s.onDisk[i])
			ms := state.Conversation()
			if err := rnixctx.Legal(ms); err != nil {
				rt.Fatal("after record", i+1, err)
			}
			if n := len(state.Messages); n > 0 && (&ms[0] != &state.Messages[0] && !reflect.DeepEqual(ms[n-1], state.Messages[n-1])) {
				rt.Fatal("after record", i+1, "the last message is", ms[n-1])
			}
		}
	})
}

// TestWhatWasPaidIsCounted adds up what answers and steps say in another way: by step, the larger. What was cut off counts
// beside that, each time.
func TestWhatWasPaidIsCounted(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		tokens, cost, before := map[int]int{}, map[int]float64{}, 0
		lost, lostCost := 0, 0.0
		state := new(State)
		for i := range s.onDisk {
			r := &s.onDisk[i]
			state.Apply(r)
			switch {
			case r.Answer != nil:
				tokens[r.Answer.Step], cost[r.Answer.Step] = r.Answer.TokensUsed, r.Answer.CostUSD
			case r.Step != nil:
				n := r.Step.StepNumber
				tokens[n], cost[n] = max(tokens[n], r.Step.TokensUsed), max(cost[n], r.Step.CostUSD)
			case r.Marker != nil:
				if a, ok := step.CutOff(r.Marker); ok {
					lost, lostCost = lost+a.TokensUsed, lostCost+a.CostUSD
				}
			}
			want, paid := lost, lostCost
			for n := range tokens {
				want += tokens[n]
				paid += cost[n]
			}
			if state.Tokens != want || state.Tokens < before || math.Abs(state.CostUSD-paid) > 1e-6 {
				rt.Fatal("after record", i+1, "tokens", state.Tokens, "of", want, "before", before, "cost", state.CostUSD, "of", paid)
			}
			before = state.Tokens
		}
	})
}

func TestTheSmallFileCountsWhatTheStateCounts(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		for n := 1; n <= len(s.onDisk); n++ {
			state := folded(s.onDisk[:n])
			h, err := step.Fold(s.id, source(s.onDisk[:n])(1))
			must(rt, err)
			i := h.Info()
			if i.TokensUsed != state.Tokens || i.Unpriced != state.Unpriced || math.Abs(i.CostUSD-state.CostUSD) > 1e-6 || !slices.Equal(i.Spending, state.Spending) {
				rt.Fatalf("after record %d: %d tokens, %d unpriced, $%v, %v; the state has %d, %d, $%v, %v", n, i.TokensUsed, i.Unpriced, i.CostUSD, i.Spending,
					state.Tokens, state.Unpriced, state.CostUSD, state.Spending)
			}
		}
	})
}

// TestUnknownCallsAreThoseWithoutAnEnd looks for them in the records, backwards.
func TestUnknownCallsAreThoseWithoutAnEnd(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		state := new(State)
		for i := range s.onDisk {
			state.Apply(&s.onDisk[i])
			want := map[string]bool{}
			ended := map[string]bool{}
			for j := i; j >= 0; j-- {
				r := s.onDisk[j]
				if r.Kind == step.KindStep || r.Message != nil && r.Message.Role == rnixctx.RoleAssistant {
					break
				}
				switch {
				case r.Result != nil:
					ended[r.Result.CallID] = true
				case r.Message != nil && r.Message.Role == rnixctx.RoleTool:
					ended[r.Message.ToolCallID] = true
				case r.Intent != nil && !ended[r.Intent.CallID]:
					want[r.Intent.CallID] = true
					ended[r.Intent.CallID] = true
				}
			}
			got := map[string]bool{}
			for _, c := range state.Unknown() {
				got[c.ID] = true
			}
			if d := cmp.Diff(want, got); d != "" {
				rt.Fatal("after record", i+1, d)
			}
		}
	})
}

func TestUntilIsTheHistoryCutBehindAStep(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		ends, last := map[int]int{}, 0
		for i, r := range s.onDisk {
			if ends[0] == 0 && r.Kind == step.KindMessage {
				ends[0] = i + 1
			}
			if r.Kind == step.KindStep {
				ends[r.Step.StepNumber] = i + 1
				last = max(last, r.Step.StepNumber)
			}
		}
		for n, end := range ends {
			got, err := Until(s.id, source(s.onDisk), n)
			must(rt, err)
			if d := cmp.Diff(image(rt, folded(s.onDisk[:end])), image(rt, got)); d != "" {
				rt.Fatal("step", n, d)
			}
		}
		for _, n := range []int{-1, last + 1} {
			if _, err := Until(s.id, source(s.onDisk), n); types.CodeOf(err) != types.ErrInvalid {
				rt.Fatal("step", n, err)
			}
		}
	})
}

func TestACopyOfAStateStaysAsItIs(t *testing.T) {
	property(t, 8, func(rt *rapid.T, s *stored) {
		k := rapid.IntRange(0, len(s.onDisk)).Draw(rt, "k")
		state := folded(s.onDisk[:k])
		copied, before := state.Clone(), image(rt, state)
		for i := k; i < len(s.onDisk); i++ {
			state.Apply(&s.onDisk[i])
		}
		if d := cmp.Diff(before, image(rt, copied)); d != "" {
			rt.Fatal(d)
		}
		for i := k; i < len(s.onDisk); i++ {
			copied.Apply(&s.onDisk[i])
		}
		if d := cmp.Diff(image(rt, state), image(rt, copied)); d != "" {
			rt.Fatal("a copy does not go on like its origin", d)
		}
	})
}

func TestAForkIsUnfinishedUntilItHasAllRecords(t *testing.T) {
	forks := 0
	for seed := range uint64(60) {
		s := write(t, seed, recoverytest.Options{Steps: 4})
		if s.given[0].Marker.Name != step.MarkerFork {
			continue
		}
		forks++
		var d step.ForkDetail
		must(t, json.Unmarshal(s.given[0].Marker.Detail, &d))
		state := new(State)
		for i := range s.onDisk {
			state.Apply(&s.onDisk[i])
			if want := uint64(i+1) < d.Records+1; state.Unfinished() != want || state.Origin.Origin != d.Origin {
				t.Errorf("seed %d: after %d of %d records: unfinished is %v", seed, i+1, d.Records+1, !want)
			}
		}
	}
	if forks < 10 {
		t.Errorf("only %d forks were written", forks)
	}
}

// markers makes a history of markers, each a number of minutes behind the one before.
func markers(ms ...any) []step.Record {
	var out []step.Record
	at := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	for i := 0; i < len(ms); i += 2 {
		at = at.Add(time.Duration(ms[i].(int)) * time.Minute)
		out = append(out, step.Record{V: 1, Seq: uint64(len(out) + 1), Time: at, Kind: step.KindMarker, Marker: &step.Marker{Name: ms[i+1].(string), PID: 1}})
	}
	return out
}

func TestTimeIsCountedWhileAProcessLives(t *testing.T) {
	for name, c := range map[string]struct {
		recs    []step.Record
		minutes int
		phase   Phase
		crashes int
	}{
		"it ended":                {markers(0, "spawn", 5, "exit"), 5, Ended, 0},
		"it runs":                 {markers(0, "spawn", 5, "input"), 5, Running, 0},
		"it was paused":           {markers(0, "spawn", 5, "pause", 60, "resume", 2, "exit"), 7, Ended, 0},
		"resumed, but not paused": {markers(0, "spawn", 5, "resume", 2, "exit"), 7, Ended, 0},
		"stopped while paused":    {markers(0, "spawn", 5, "pause", 60, "daemon_stop", 60, "resumed", 1, "exit"), 6, Ended, 0},
		"the daemon was stopped":  {markers(0, "spawn", 5, "daemon_stop", 600, "resumed", 1, "suspended"), 6, Suspended, 0},
		"the daemon was killed":   {markers(0, "spawn", 5, "input", 600, "interrupted"), 5, Broken, 1},
		"twice":                   {markers(0, "spawn", 5, "input", 600, "interrupted", 9, "resumed", 1, "input", 9, "interrupted"), 6, Broken, 2},
		"killed, and not noted":   {markers(0, "spawn", 5, "input", 600, "resumed", 1, "exit"), 6, Ended, 0},
		"noted twice":             {markers(0, "spawn", 5, "input", 600, "interrupted", 9, "interrupted"), 5, Broken, 1},
	} {
		s := folded(c.recs)
		if s.Active != time.Duration(c.minutes)*time.Minute || s.Phase != c.phase || s.Crashes != c.crashes {
			t.Errorf("%s: lived %v, phase %s, %d crashes", name, s.Active, s.Phase, s.Crashes)
		}
	}
}

// TestAStepWithoutAnAnswerPaysForItself has a step that was left open by a run and never closed.
func TestAStepWithoutAnAnswerPaysForItself(t *testing.T) {
	recs := []step.Record{
		{Kind: step.KindMarker, Marker: &step.Marker{Name: step.MarkerSpawn}},
		{Kind: step.KindMessage, Message: &rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "x"}, Answer: &step.Answer{Step: 1, TokensUsed: 100, CostUSD: 1}},
		{Kind: step.KindStep, Step: &step.StepRecord{StepNumber: 2, TokensUsed: 70, CostUSD: 0.5}},
		{Kind: step.KindStep, Step: &step.StepRecord{StepNumber: 3, TokensUsed: 7}},
	}
	for i := range recs {
		recs[i].Seq = uint64(i + 1)
	}
	if s := folded(recs); s.Tokens != 177 || s.CostUSD != 1.5 {
		t.Errorf("%d tokens, %v dollars", s.Tokens, s.CostUSD)
	}
}

func TestTheClockOfTheProcessLeavesNoTrace(t *testing.T) {
	now := time.Now()
	recs := []step.Record{
		{Kind: step.KindMarker, Seq: 1, Time: now, Marker: &step.Marker{Name: step.MarkerSpawn}},
		{Kind: step.KindMarker, Seq: 2, Time: now.Add(time.Second), Marker: &step.Marker{Name: step.MarkerPause}},
	}
	s := folded(recs)
	if s.Time != s.Time.Round(0) || s.Active != time.Second {
		t.Errorf("time %v, lived %v", s.Time, s.Active)
	}
}

func TestNothingReadIsAnError(t *testing.T) {
	if _, _, _, err := Read(damaged(nil), nil); types.CodeOf(err) != types.ErrStorage {
		t.Errorf("got %v", err)
	}
	gone := func(uint64) iter.Seq2[step.Record, error] {
		return func(yield func(step.Record, error) bool) {
			yield(step.Record{}, types.Errorf(types.ErrNotFound, "Replay", "x", "gone"))
		}
	}
	s := write(t, rand.Uint64(), recoverytest.Options{})
	for _, cp := range []*step.Checkpoint{nil, through(t, s, folded(s.onDisk))} {
		if _, _, _, err := Read(gone, cp); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("got %v", err)
		}
	}
}

// TestWhatOthersWroteSurvivesByteForByte looks at what goes into a prompt, or into a later run: a provider's
// cache and a signature are of bytes, not of what they mean.
func TestWhatOthersWroteSurvivesByteForByte(t *testing.T) {
	const odd = `{"a":"<&>\u003c\u2028\/é","n":1.50}`
	ms := []rnixctx.Message{
		{Role: rnixctx.RoleAssistant, Content: "a < b", ToolCalls: []rnixctx.ToolCall{{ID: "1", Name: "x", Input: json.RawMessage(odd)}},
			Reasoning: []rnixctx.Block{{Provider: "p", Data: json.RawMessage(odd)}}},
		{Role: rnixctx.RoleTool, ToolCallID: "1", Content: "<ok>"},
	}
	detail, err := step.CompactionDetail(ms, nil, false)
	must(t, err)
	s := write(t, 1, recoverytest.Options{})
	id := types.NewUUID()
	lease, err := s.j.Acquire(t.Context(), id, "test")
	must(t, err)
	w := step.NewWriter(s.j, id, lease)
	must(t, w.Marker(&step.Marker{Name: step.MarkerSpawn, Detail: json.RawMessage(odd)}), w.Message(&ms[0]), w.Message(&ms[1]),
		w.Marker(&step.Marker{Name: step.MarkerCompaction, Detail: detail}), w.Message(&ms[0]), w.Close(t.Context()))
	s.id, s.dir = id, s.j.Dir(id)
	src := func(from uint64) iter.Seq2[step.Record, error] { return s.j.Replay(t.Context(), id, from) }
	state, _, _, err := Read(src, nil)
	must(t, err)
	again, used, _, err := Read(src, through(t, s, state))
	must(t, err)
	want := append(slices.Clone(ms), ms[0])
	for _, got := range []*State{state, again} {
		if d := cmp.Diff(want, got.Messages); d != "" || string(got.Settled) != odd {
			t.Errorf("%s, settled %s", d, got.Settled)
		}
	}
	if !used {
		t.Error("the checkpoint was not used")
	}
}
