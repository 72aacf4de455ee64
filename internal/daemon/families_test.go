package daemon_test

import (
	"encoding/json"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// What a family has used is the same while it lives, after its end, and after a crash; a fork counts from where it began, also while it lives, and what has
// no known price is said to have none.
func TestFamiliesAreSummedOverRestartsAndForksAlsoWithoutAPrice(t *testing.T) {
	held := make(chan struct{})
	var forked atomic.Int32
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		fails := []llmtest.ToolCall{{ID: "c", Name: "read_file", Input: `{"path":"missing"}`}}
		done := llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 1000, Output: 100}}
		said := ""
		for _, m := range r.Messages {
			said += m.Text + "\n"
		}
		switch {
		case strings.Contains(said, "another way"):
			if forked.Add(1) == 1 {
				return llmtest.Reply{ToolCalls: fails, Usage: done.Usage}
			}
			select {
			case <-held:
			case <-t.Context().Done():
			}
		case len(r.Messages) == 1 && strings.Contains(said, "lead"):
			return llmtest.Reply{ToolCalls: fails, Usage: done.Usage}
		}
		return done
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	lead := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "claude-opus-5-5"}})
	s.Wait(lead.PID)
	one := 1
	fork, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: lead.UUID.String(), Fork: true, FromStep: &one, NewInput: "and another way", Env: s.Env, Cwd: s.Work})
	if err != nil {
		t.Fatal(err)
	}
	s.Await(fork.PID, event.StepEnded, func(e *event.Event) bool { return e.Step == 2 })
	kid := s.Spawn(ipc.SpawnRequest{Intent: "help", ProcSpec: types.ProcSpec{Model: "fake"}, Parent: fork.PID.String()})
	s.Await(kid.PID, event.Exited, nil)
	check := func(when string, own int) {
		t.Helper()
		r, err := ipc.Call(t.Context(), s.Client, ipc.Families, ipc.FamiliesRequest{Targets: []string{fork.UUID.String()}})
		if err != nil || len(r.Families) != 1 {
			t.Fatal(r, err)
		}
		f := r.Families[0]
		text, _ := json.Marshal(f)
		switch {
		case f.Tree == nil || f.Forks == nil || f.Start != lead.UUID:
			t.Fatalf("%s: %s", when, text)
		case f.Own.Tokens != own || f.Own.FailedCalls != 1 || f.Own.Unpriced != 0:
			t.Errorf("%s: the fork itself: %s", when, text)
		case f.Tree.Processes != 2 || f.Tree.Tokens != own+1100 || f.Tree.Unpriced != 1100 || f.Tree.FailedCalls != 1 || f.Tree.CostUSD == nil || f.Tree.FailedUnknown != 0:
			t.Errorf("%s: with its child: %s", when, text)
		case f.Forks.Processes != 3 || f.Forks.Tokens != 2200+own+1100 || f.Forks.FailedCalls != 2:
			t.Errorf("%s: with all forks: %s", when, text)
		}
		cost, err := ipc.Call(t.Context(), s.Client, ipc.ShowCost, ipc.CostRequest{By: "process"})
		if err != nil || cost.Total.Tokens != 2200+own+1100 {
			t.Errorf("%s: all have used %d, %v", when, cost.Total.Tokens, err)
		}
	}
	check("while the fork lives", 1100)
	close(held)
	if w := s.Wait(fork.PID); w.FamilyUnpriced != 1100 || w.FamilyFailed != w.FailedCalls || w.FamilyTokens != w.TokensUsed+1100 {
		t.Errorf("%+v", w)
	}
	check("after its end", 2200)
	s.Kill()
	s.Start()
	s.Settle()
	check("after a crash", 2200)
}
