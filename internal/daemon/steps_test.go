package daemon_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// longHistory writes an ended process of n steps with a call each, and returns its UUID.
func longHistory(t *testing.T, dir string, n int) types.UUID {
	t.Helper()
	j, err := step.OpenLocal(durable.OS, dir, step.Unsynced)
	if err != nil {
		t.Fatal(err)
	}
	ctx, id, now := context.Background(), types.NewUUID(), time.Now()
	lease, err := j.Acquire(ctx, id, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := step.NewWriter(j, id, lease)
	must := func(errs ...error) {
		t.Helper()
		for _, err := range errs {
			if err != nil {
				t.Fatal(err)
			}
		}
	}
	must(w.Marker(&step.Marker{Name: step.MarkerSpawn, PID: 1, Text: "long"}), w.Message(&rnixctx.Message{Role: rnixctx.RoleUser, Content: "long"}))
	text := strings.Repeat("some text of a tool. ", 20)
	for i := 1; i <= n; i++ {
		rec := step.StepRecord{StepNumber: i, MessageCount: 2*i - 1, TokensUsed: 10, Action: "tool_call", Summary: fmt.Sprint("reads ", i), Timestamp: now,
			ToolCalls: []step.Call{{ID: "c", Name: "read", Path: "/dev/fs/x"}}}
		if i == n/3 {
			text += " the needle"
		}
		must(w.Answer(&rnixctx.Message{Role: rnixctx.RoleAssistant, Content: fmt.Sprint("answer ", i), ToolCalls: []rnixctx.ToolCall{{ID: "c", Name: "read", Input: []byte(`{"path":"x"}`)}}}, rec.Answer()),
			w.Intent(&step.Intent{Step: i, CallID: "c", Tool: "read", Path: "/dev/fs/x", Effect: "none"}), w.Result(&step.Result{Step: i, CallID: "c", Tool: "read"}),
			w.Message(&rnixctx.Message{Role: rnixctx.RoleTool, Content: text, ToolCallID: "c"}), w.Step(&rec))
		text = strings.TrimSuffix(text, " the needle")
		if i%100 == 0 {
			must(w.Commit(ctx))
		}
	}
	info := step.ProcInfo{UUID: id, PID: 1, State: types.StateDead, Intent: "long", CreatedAt: now, UpdatedAt: now, DeadAt: now, Step: n, Exit: &types.ExitStatus{Reason: types.ReasonCompleted}}
	must(w.Marker(&step.Marker{Name: step.MarkerExit, PID: 1, Exit: info.Exit}), w.Close(ctx), j.PutInfo(&info), j.Close())
	return id
}

func TestStepsOfALongHistoryComePageByPage(t *testing.T) {
	const steps = 100_000
	s := testenv.New(t)
	s.Stop()
	id := longHistory(t, s.Data, steps).String()
	s.Start()
	list := func(req ipc.StepsRequest) ipc.ListStepsResponse {
		t.Helper()
		req.Target = id
		began := time.Now()
		r, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, req)
		if err != nil {
			t.Fatal(err)
		}
		t.Logf("%+v: %d steps in %v", req, len(r.Steps), time.Since(began))
		if r.First != 1 || r.Last != steps {
			t.Errorf("steps %d to %d", r.First, r.Last)
		}
		return r
	}
	began := time.Now()
	if r := list(ipc.StepsRequest{Last: true, Limit: 200, Bare: true}); len(r.Steps) != 200 || r.Steps[199].StepNumber != steps || r.Next != 0 || r.Prev != steps-199 || r.Steps[0].RawResponse != "" {
		t.Errorf("the end: %d steps, %d, %d", len(r.Steps), r.Next, r.Prev)
	}
	if took := time.Since(began); took > 2*time.Second { // a whole reading takes longer, the page some milliseconds
		t.Errorf("the last page has taken %v", took)
	}
	if r := list(ipc.StepsRequest{After: 50_000}); len(r.Steps) != ipc.PageSteps || r.Steps[0].StepNumber != 50_001 || r.Next != 50_100 || !strings.HasPrefix(r.Steps[0].RawResponse, "answer 50001") {
		t.Errorf("the middle: %d steps, %d", len(r.Steps), r.Next)
	}
	found := 0
	for after, asked := 0, 0; found == 0 && asked < 2*steps/ipc.FindSpan; asked++ {
		r := list(ipc.StepsRequest{After: after, Find: "the needle", Limit: 1, Bare: true})
		if after = r.Next; len(r.Steps) > 0 {
			found = r.Steps[0].StepNumber
		}
	}
	if found != steps/3 {
		t.Errorf("the needle is in step %d", found)
	}
	one, err := ipc.Call(t.Context(), s.Client, ipc.GetStepDetail, ipc.StepRequest{Target: id, Step: 77_777, Alone: true})
	if err != nil || one.Step.StepNumber != 77_777 || len(one.Step.Messages) != 0 || one.Step.ToolCalls[0].Input != `{"path":"x"}` {
		t.Errorf("%+v, %v", one.Step, err)
	}
	for _, bad := range []ipc.StepsRequest{{Target: id, Limit: -1}, {Target: id, Limit: ipc.MaxPageSteps + 1}, {Target: id, After: -1}} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, bad); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
