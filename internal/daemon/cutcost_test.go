package daemon_test

import (
	"maps"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// What a vendor may bill for questions that were cut off is in the costs and in the budgets: the same before and after
// the daemon ends in any way, and in whatever goes on.
func TestQuestionsThatAreCutOffArePaidForOverEveryEndOfTheDaemon(t *testing.T) {
	asked := make(chan string, 10)
	var answers atomic.Bool
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		asked <- r.Messages[0].Text
		if answers.Load() {
			return llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 1000, Output: 100}}
		}
		return llmtest.Reply{Text: strings.Repeat("word", 50), Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	budget := 100_000
	spawn := func(intent string) ipc.SpawnResponse {
		p := s.Spawn(ipc.SpawnRequest{Intent: intent, ProcSpec: types.ProcSpec{Model: "claude-opus-5-5", ContextBudget: &budget}})
		if got := <-asked; got != intent {
			t.Fatalf("%q was asked, not %q", got, intent)
		}
		return p
	}
	killed, held, stopped := spawn("killed"), spawn("held"), spawn("stopped")
	signal(t, s, killed.PID, types.SIGKILL)
	if w := s.Wait(killed.PID); w.Exit.Code != types.ExitCancelled {
		t.Errorf("%+v", w)
	}
	signal(t, s, held.PID, types.SIGPAUSE)
	until(t, "the question is on record", func() bool { return usedTokens(t, s)["held"] > 0 })
	signal(t, s, held.PID, types.SIGRESUME)
	<-asked
	once := usedTokens(t, s)
	if once["killed"] == 0 || once["held"] == 0 || once["stopped"] != 0 {
		t.Errorf("used: %v", once)
	}
	signal(t, s, held.PID, types.SIGPAUSE)
	until(t, "the second one is too", func() bool { return usedTokens(t, s)["held"] > once["held"] })
	s.Stop()
	s.Start()
	s.Settle()
	want := usedTokens(t, s)
	if want["killed"] != once["killed"] || want["held"] < 2*once["held"]-100 || want["held"] > 2*once["held"]+100 || want["stopped"] == 0 {
		t.Errorf("used: %v, before %v", want, once)
	}
	for _, p := range []ipc.SpawnResponse{killed, held, stopped} {
		lines := budgetOf(t, s, p.UUID.String())
		for intent, l := range lines {
			if l.Tokens.Used != want[intent] || l.Tokens.Reserved != 0 {
				t.Errorf("the budget of %s: %+v, want %d", intent, l.Tokens, want[intent])
			}
		}
		if len(lines) != 1 {
			t.Errorf("budgets: %+v", lines)
		}
	}
	bill := costs(t, s).Total
	sum := want["killed"] + want["held"] + want["stopped"]
	if bill.Tokens != sum || bill.Answers != 0 || !bill.Estimated || bill.CostUSD == nil || *bill.CostUSD <= 0 || bill.Unpriced != 0 {
		t.Errorf("%+v for %d tokens", bill, sum)
	}
	for name, end := range map[string]func(){"killed": s.Kill, "stopped": s.Stop} {
		end()
		s.Start()
		s.Settle()
		if got, now := usedTokens(t, s), costs(t, s).Total; !maps.Equal(got, want) || now.Tokens != bill.Tokens || *now.CostUSD != *bill.CostUSD {
			t.Errorf("daemon %s: %v, %+v, before %v, %+v", name, got, now, want, bill)
		}
	}
	answers.Store(true)
	for _, p := range []ipc.SpawnResponse{held, stopped} {
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env})
		if err != nil {
			t.Fatal(err)
		}
		if w := s.Wait(r.PID); w.Exit.Code != 0 || w.Result != "done" {
			t.Errorf("%+v", w)
		}
	}
	want["held"] += 1100
	want["stopped"] += 1100
	if got, now := usedTokens(t, s), costs(t, s).Total; !maps.Equal(got, want) || now.Tokens != sum+2200 || now.Answers != 2 {
		t.Errorf("when they are done: %v, want %v; %+v", got, want, now)
	}
}

// usedTokens returns what each process has used, by its intent.
func usedTokens(t *testing.T, s *testenv.System) map[string]int {
	t.Helper()
	used := map[string]int{}
	for _, l := range costs(t, s).Lines {
		used[l.Intent] = l.Tokens
	}
	return used
}

func costs(t *testing.T, s *testenv.System) ipc.CostResponse {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.ShowCost, ipc.CostRequest{By: "process"})
	if err != nil {
		t.Fatal(err)
	}
	return r
}
