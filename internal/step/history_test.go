package step

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rnixctx "rnix/context"
	"rnix/types"
)

func read(t *testing.T, j Journal, id types.UUID) *History {
	t.Helper()
	h, err := ReadHistory(t.Context(), j, id)
	if err != nil || h.Damage != "" {
		t.Fatalf("%q, %v", h.Damage, err)
	}
	return h
}

func contents(ms []rnixctx.Message) string {
	var out []string
	for _, m := range ms {
		out = append(out, m.Content)
	}
	return strings.Join(out, " ")
}

func TestStepIsPresentedWithItsPrompt(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	for n := range 3 {
		writeStep(t, w, n+1, fmt.Sprint("m", n+1))
	}
	h := read(t, j, id)
	for n, want := range []string{"m1", "m1 m1 m2", "m1 m1 m2 m2 m3"} {
		s, err := h.Step(n + 1)
		if err != nil || contents(s.Messages) != want {
			t.Errorf("step %d: %q, %v", n+1, contents(s.Messages), err)
		}
	}
	if _, err := h.Step(4); types.CodeOf(err) != types.ErrNotFound || !strings.Contains(err.Error(), "there are steps 1 to 3") {
		t.Errorf("got %v", err)
	}
	if _, err := (&History{}).Step(1); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("got %v", err)
	}
	if len(h.Steps[0].Messages) != 0 {
		t.Error("the list of steps holds messages")
	}
}

func TestCompactionReplacesWhatWasBefore(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	must(t, w.Message(user("a")), w.Message(user("b")), w.Step(&StepRecord{StepNumber: 1, MessageCount: 2}))
	must(t, w.Compaction("too long", []rnixctx.Message{*user("ab")}))
	must(t, w.Message(user("c")), w.Step(&StepRecord{StepNumber: 2, MessageCount: 2}), w.Commit(t.Context()))
	h := read(t, j, id)
	one, _ := h.Step(1)
	two, _ := h.Step(2)
	if contents(one.Messages) != "a b" || contents(two.Messages) != "ab c" || contents(h.Messages) != "ab c" {
		t.Errorf("%q, %q, %q", contents(one.Messages), contents(two.Messages), contents(h.Messages))
	}
	p, err := h.Profile(ProfileOptions{})
	must(t, err)
	var got []string
	for _, s := range p.Segments {
		got = append(got, fmt.Sprintf("%d:%d:%d-%d:%v", s.Seq, s.Prompts, s.FirstStep, s.LastStep, s.Dropped))
	}
	want := "1:1:1-1:true 2:1:1-1:true 4:1:2-2:false 5:1:2-2:false"
	if strings.Join(got, " ") != want || p.Tokens != 10 || p.Sent != 20 {
		t.Errorf("%v, %d tokens, %d sent", got, p.Tokens, p.Sent)
	}
}

func TestCallWithoutAResultIsInterrupted(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	intent := func(step int, id string) error { return w.Intent(&Intent{Step: step, CallID: id}) }
	result := func(step int, id string) error { return w.Result(&Result{Step: step, CallID: id}) }
	must(t, intent(1, "a"), result(1, "a"), intent(2, "a"), intent(2, "b"), intent(2, "c"), result(2, "b"), w.Commit(t.Context()))
	h := read(t, j, id)
	if got := fmt.Sprint(h.Interrupted); len(h.Interrupted) != 2 || h.Interrupted[0].CallID != "a" || h.Interrupted[0].Step != 2 || h.Interrupted[1].CallID != "c" {
		t.Error(got)
	}
	must(t, intent(2, "a"), result(2, "a"), result(2, "c"), w.Commit(t.Context()))
	if h := read(t, j, id); len(h.Interrupted) != 0 {
		t.Errorf("after they were run again: %v", h.Interrupted)
	}
}

func TestTwentyMegabyteMessageIsKept(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	long := strings.Repeat("long ", 4<<20)
	must(t, w.Message(user(long)), w.Message(user("after")), w.Commit(t.Context()))
	h := read(t, j, id)
	if len(h.Messages) != 2 || h.Messages[0].Content != long || h.Messages[1].Content != "after" {
		t.Errorf("%d messages", len(h.Messages))
	}
}

func TestLostInfoIsMadeAnewFromTheSteps(t *testing.T) {
	_, j := memory(t)
	id := types.NewUUID()
	w := newWriter(t, j, id)
	detail, _ := json.Marshal(ProcInfo{ProcStatus: types.ProcStatus{Name: "n", Intent: "do it", MaxSteps: 20, WorkDir: "/w", TokensUsed: 77}})
	must(t, w.Marker(&Marker{Name: MarkerSpawn, PID: 5, Text: "do it", Detail: detail}))
	writeStep(t, w, 1, "x")
	writeStep(t, w, 2, "y")
	got := read(t, j, id).Info()
	if got.CreatedAt.IsZero() || got.UpdatedAt.Before(got.CreatedAt) {
		t.Errorf("times %v, %v", got.CreatedAt, got.UpdatedAt)
	}
	got.CreatedAt, got.UpdatedAt = time.Time{}, time.Time{}
	want := ProcInfo{V: 1, ProcStatus: types.ProcStatus{UUID: id, PID: 5, Name: "n", Intent: "do it", MaxSteps: 20, WorkDir: "/w", Step: 2, TokensUsed: 20, CostUSD: 1, Provider: "p", Model: "m"}, State: types.StateRunning, Suspended: true,
		Suspension: types.Suspend(types.SuspendBroken), Runs: 1, ActiveTotal: got.ActiveTotal, Spending: []Spending{{Day: "0001-01-01", Provider: "p", Model: "m", Answers: 2, Input: 20, CostUSD: 1}}}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	must(t, w.Marker(&Marker{Name: MarkerResume, PID: 6}), w.Marker(&Marker{Name: MarkerExit, Text: "brought", Exit: &types.ExitStatus{Code: 2, Reason: "r"}}), w.Commit(t.Context()))
	got = read(t, j, id).Info()
	if got.Result != "brought" {
		t.Errorf("its result is %q: a crash between its end and its small file would lose it", got.Result)
	}
	if got.PID != 6 || got.State != types.StateDead || got.Suspended || got.Exit.Code != 2 || got.DeadAt.IsZero() {
		t.Errorf("after the end: %+v", got)
	}
}
