package daemon_test

import (
	"math"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
)

// TestWorkflowSaysWhatHasNoKnownPrice runs a node whose model has a price and one whose model has none, which must not
// look as if it had cost nothing: not while it runs, and not after a restart.
func TestWorkflowSaysWhatHasNoKnownPrice(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 1000, Output: 100}}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	up, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{File: "compose.yaml", Name: "w", Cwd: s.Work, Env: s.Env,
		Text: "agents:\n  priced: {intent: work, model: claude-opus-5-5}\n  unknown: {intent: work, model: fake, depends_on: [priced]}\n"})
	if err != nil {
		t.Fatal(err)
	}
	composed(t, s, up.UUID.String(), runEnded)
	for restart := range 2 {
		r, err := ipc.Call(t.Context(), s.Client, ipc.ComposeStatus, ipc.TargetRequest{Target: up.UUID.String()})
		if err != nil || r.TokensUsed != 2200 || r.Unpriced != 1100 || math.Abs(r.CostUSD-0.006) > 1e-9 || len(r.Nodes) != 2 {
			t.Fatalf("%d: %+v %v", restart, r, err)
		}
		if a, b := r.Nodes[0], r.Nodes[1]; a.Unpriced != 0 || a.CostUSD == 0 || b.Unpriced != 1100 || b.CostUSD != 0 {
			t.Errorf("%d: %+v %+v", restart, a, b)
		}
		list, err := ipc.Call(t.Context(), s.Client, ipc.ComposeList, ipc.ListRequest{All: true})
		if err != nil || len(list.Runs) != 1 || list.Runs[0].Unpriced != 1100 {
			t.Errorf("%d: %+v %v", restart, list, err)
		}
		s.Kill()
		s.Start()
		s.Settle()
	}
}
