package daemon_test

import (
	"context"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A row that changes while frames are due at several paces is told as it was looked at: of what has ended, too, which is
// not kept.
func TestWhatHasEndedIsTheSameAtEachPace(t *testing.T) {
	_, url := llmtest.NewAPI(t, hangs)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	ctx, cancel := context.WithCancel(t.Context())
	requests := []ipc.WatchRequest{{All: true, EveryMs: 33}, {All: true, EveryMs: 50}, {All: true}, {All: true, EveryMs: 120}}
	var mirrors []*mirror
	for _, req := range requests {
		mirrors = append(mirrors, watch(ctx, t, s.Client, req))
	}
	budget := 100_000
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}})
	signal(t, s, p.PID, types.SIGKILL)
	s.Wait(p.PID)
	const times = 150
	for range times {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.AddBudget, ipc.AddBudgetRequest{Target: p.UUID.String(), Tokens: 1}); err != nil {
			t.Fatal(err)
		}
	}
	for _, m := range mirrors {
		m.wait("all that was added", func(rows map[types.UUID]ipc.Proc, _ *ipc.ProcTable) bool {
			return rows[p.UUID].ContextBudget == budget+times
		})
	}
	cancel()
	if comparePaces(t, requests, mirrors) == 0 {
		t.Error("that is no comparison")
	}
}
