package daemon_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

func TestStepsOfALongHistoryComePageByPage(t *testing.T) {
	steps := soak.Pick(t, "steps of the history", 5_000, 100_000)
	s := testenv.New(t)
	s.Stop()
	id := testenv.LongHistory(t, s.Data, steps).String()
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
	middle := steps / 2
	if r := list(ipc.StepsRequest{After: middle}); len(r.Steps) != ipc.PageSteps || r.Steps[0].StepNumber != middle+1 || r.Next != middle+100 || !strings.HasPrefix(r.Steps[0].RawResponse, fmt.Sprint("answer ", middle+1)) {
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
	one, err := ipc.Call(t.Context(), s.Client, ipc.GetStepDetail, ipc.StepRequest{Target: id, Step: steps - 777, Alone: true})
	if err != nil || one.Step.StepNumber != steps-777 || len(one.Step.Messages) != 0 || one.Step.ToolCalls[0].Input != `{"path":"x"}` {
		t.Errorf("%+v, %v", one.Step, err)
	}
	for _, bad := range []ipc.StepsRequest{{Target: id, Limit: -1}, {Target: id, Limit: ipc.MaxPageSteps + 1}, {Target: id, After: -1}} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, bad); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
}
