package daemon_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// crew is a parent that starts three children at once, each of which takes two answers of 30,000 tokens.
type crew struct {
	mu    sync.Mutex
	asked map[string]int // +checklocks:mu
	all   chan struct{}  // closed when the parent and its three children have been asked
}

func (c *crew) reply(r llmtest.Request) llmtest.Reply {
	who := r.Messages[0].Text
	c.mu.Lock()
	if c.asked[who]++; len(c.asked) == 4 && c.asked[who] == 1 {
		close(c.all)
	}
	c.mu.Unlock()
	cost := func(reply llmtest.Reply, n int) llmtest.Reply {
		reply.Usage = &llmtest.Usage{Input: n}
		return reply
	}
	_, told := r.LastResult()
	switch {
	case who == "lead" && told:
		return cost(llmtest.Reply{Text: "all done"}, 10)
	case who == "lead":
		return cost(llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "spawn", Input: `{"intent":"a"}`}, {Name: "spawn", Input: `{"intent":"b"}`}, {Name: "spawn", Input: `{"intent":"c"}`}}}, 10)
	case told:
		return cost(llmtest.Reply{Text: who + " is done"}, 30_000)
	}
	<-c.all // nobody has his second answer before all have had their first
	return cost(tool("shell", fmt.Sprintf(`{"command":"echo %s >>effects"}`, who)), 30_000)
}

func (c *crew) total() (n int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range c.asked {
		n += k
	}
	return n
}

func budgetOf(t *testing.T, s *testenv.System, target string) map[string]ipc.BudgetLine {
	t.Helper()
	r, err := ipc.Call(t.Context(), s.Client, ipc.ShowBudget, ipc.BudgetRequest{Target: target})
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]ipc.BudgetLine{}
	for _, l := range r.Budgets {
		out[l.Intent] = l
	}
	return out
}

// Of three children on one budget one may use the last of it, the others stop, a crash changes nothing, and more of it
// lets all go on.
func TestSharedBudgetSuspendsTheFamilyAndATopUpWakesIt(t *testing.T) {
	c := &crew{asked: map[string]int{}, all: make(chan struct{})}
	_, url := llmtest.NewAPI(t, c.reply)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	budget := 100_000
	lead := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}})
	if w := s.Wait(lead.PID); !w.Suspended || w.Exit.Code != types.ExitBudget {
		t.Fatalf("%+v", w)
	}
	check := func(when string) {
		t.Helper()
		top := budgetOf(t, s, lead.UUID.String())["lead"]
		if top.Tokens.Used != 120_010 || top.Tokens.Reserved != 0 || top.Tokens.Limit == nil || *top.Tokens.Limit != budget || *top.Tokens.Left != 0 {
			t.Errorf("%s: %+v", when, top.Tokens)
		}
	}
	check("suspended")
	s.Kill()
	s.Start()
	s.Settle()
	check("after a crash")
	last60 := 0 // its answer is there, and has used up the budget: it is done when there is more
	for _, p := range procsOf(t, s) {
		switch {
		case p.State != "suspended" || p.Intent != "lead" && !strings.Contains(p.Wait, "budget of PID 1: 120,010 of 100,000 tokens are used"):
			t.Errorf("%s is %s: %q", p.Intent, p.State, p.Wait)
		case p.Intent != "lead":
			line := budgetOf(t, s, p.UUID.String())
			if line[p.Intent].Tokens.Used == 60_000 {
				last60++
			} else if !line["lead"].Above || line[p.Intent].Tokens.Limit != nil || line[p.Intent].Tokens.Used != 30_000 {
				t.Errorf("%+v", line)
			}
		}
	}
	if last60 != 1 {
		t.Errorf("%d have used the last of it", last60)
	}
	add := func(req ipc.AddBudgetRequest) (ipc.AddBudgetResponse, error) {
		req.Env = s.Env
		return ipc.Call(t.Context(), s.Client, ipc.AddBudget, req)
	}
	for _, bad := range []ipc.AddBudgetRequest{{}, {Tokens: -1}, {USD: math.Inf(1)}, {USD: -1}, {Tokens: math.MaxInt}, {USD: 1}} {
		bad.Target = lead.UUID.String()
		if math.IsInf(bad.USD, 1) {
			bad.USD = 1e300
		}
		if _, err := add(bad); types.CodeOf(err) != types.ErrInvalid {
			t.Errorf("%+v: %v", bad, err)
		}
	}
	r, err := add(ipc.AddBudgetRequest{Target: lead.UUID.String(), Tokens: 40_000, NoResume: true})
	if err != nil || len(r.Resumed) != 0 || *r.Tokens.Limit != 140_000 || *r.Tokens.Left != 19_990 {
		t.Fatalf("%+v %v", r, err)
	}
	s.Kill()
	s.Start()
	s.Settle()
	r, err = add(ipc.AddBudgetRequest{Target: lead.UUID.String(), Tokens: 260_000})
	if err != nil || *r.Tokens.Limit != 400_000 || len(r.Resumed) != 4 || len(r.Warnings) != 0 {
		t.Fatalf("%+v %v", r, err)
	}
	var last types.PID
	for _, p := range procsOf(t, s) {
		if p.Intent == "lead" {
			last = p.PID
		}
	}
	if w := s.Wait(last); w.Exit.Code != 0 || w.Result != "all done" {
		t.Errorf("%+v", w)
	}
	if got := budgetOf(t, s, lead.UUID.String()); got["lead"].Tokens.Used != 180_020 || got["b"].Tokens.Used != 60_000 {
		t.Errorf("%+v", got)
	}
	if n := c.total(); n != 8 {
		t.Errorf("the models were asked %d times", n)
	}
}

// thrifty is a model that counts 150 tokens for each call: a lead starts two children at once, each child and each node of
// a workflow calls a tool twice before it answers.
func thrifty(r llmtest.Request) llmtest.Reply {
	said := 0
	for _, m := range r.Messages {
		if m.Role == "assistant" {
			said++
		}
	}
	reply := llmtest.Reply{Text: "done"}
	switch {
	case r.Messages[0].Text == "lead" && said == 0:
		reply = llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: "spawn", Input: `{"intent":"a"}`}, {Name: "spawn", Input: `{"intent":"b"}`}}}
	case r.Messages[0].Text != "lead" && said < 2:
		reply = tool("shell", `{"command":"echo x"}`)
	}
	reply.Usage = &llmtest.Usage{Input: 140, Output: 10}
	return reply
}

// A family asks its model for as long as anything is left of a small budget, far smaller than its prompts are in bytes:
// as children, as nodes of a workflow, after a restart, and as a fork. What is said to be enough when it is used up is.
func TestFamilyUsesItsSmallBudgetToTheEnd(t *testing.T) {
	_, url := llmtest.NewAPI(t, thrifty)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	budget := 1500
	spawn := func(intent string, budget int) ipc.WaitResponse {
		t.Helper()
		return s.Wait(s.Spawn(ipc.SpawnRequest{Intent: intent, ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}}).PID)
	}
	lead := spawn("lead", budget)
	if lead.Suspended || lead.Result != "done" {
		t.Fatalf("%+v", lead)
	}
	used := func(id types.UUID, want int) {
		t.Helper()
		for _, p := range procsOf(t, s) {
			if p.UUID == id {
				if got := budgetOf(t, s, id.String())[p.Intent]; got.Tokens.Used != want {
					t.Errorf("%s has used %d, want %d", p.Intent, got.Tokens.Used, want)
				}
			}
		}
	}
	used(lead.UUID, 1200)
	run := func(name string, budget int) ipc.ComposeUpResponse {
		t.Helper()
		up, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{File: "compose.yaml", Name: name, Cwd: s.Work, Env: s.Env,
			Text: fmt.Sprintf("budget: %d\nagents:\n  one: {intent: one, model: fake}\n  two: {intent: two, model: fake}\n  three: {intent: three, model: fake, depends_on: [one, two]}\n", budget)})
		if err != nil {
			t.Fatal(err)
		}
		return up
	}
	small := run("small", budget)
	composed(t, s, small.UUID.String(), runEnded)
	used(small.UUID, 1350)
	s.Kill()
	s.Start()
	s.Settle()
	more, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: lead.UUID.String(), NewInput: "once more", Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(more.PID); w.Suspended || w.Result != "done" {
		t.Errorf("%+v", w)
	}
	used(lead.UUID, 1350)
	fork, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: lead.UUID.String(), Fork: true, NewInput: "and another way", Env: s.Env, Cwd: s.Work})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(fork.PID); w.Suspended || w.Result != "done" {
		t.Errorf("%+v", w)
	}
	broke := spawn("lead", 500)
	if !broke.Suspended {
		t.Fatalf("%+v", broke)
	}
	purse := 0
	for _, p := range procsOf(t, s) {
		if p.ParentUUID == broke.UUID && p.Purse != nil && p.Purse.UUID == broke.UUID {
			purse = max(purse, p.Purse.MoreTokens)
		}
	}
	if purse < 500 {
		t.Fatalf("%d are said to be enough", purse)
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.AddBudget, ipc.AddBudgetRequest{Target: broke.UUID.String(), Tokens: purse, Env: s.Env})
	if err != nil || len(r.Resumed) == 0 {
		t.Fatalf("%+v %v", r, err)
	}
	for _, pid := range r.Resumed {
		if w := s.Wait(pid); w.UUID == broke.UUID && w.Suspended && budgetOf(t, s, broke.UUID.String())["lead"].Tokens.Used < 500+purse {
			t.Errorf("%+v", w)
		}
	}
}

func TestCostIsAddedUpFromAllHistories(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 1000, Output: 100}}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	for i, model := range []string{"claude-opus-5-5", "claude-opus-5-5", "fake"} {
		s.Wait(s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprint("task ", i), ProcSpec: types.ProcSpec{Model: model}}).PID)
	}
	cost := func(by string) ipc.CostResponse {
		t.Helper()
		r, err := ipc.Call(t.Context(), s.Client, ipc.ShowCost, ipc.CostRequest{By: by})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	for restart := range 2 {
		r := cost("model")
		if len(r.Lines) != 2 || r.Lines[0].Key != "anthropic/claude-opus-5-5" || r.Lines[0].Processes != 2 || r.Lines[0].Answers != 2 || r.Lines[0].CostUSD == nil ||
			math.Abs(*r.Lines[0].CostUSD-0.012) > 1e-9 || r.Lines[1].CostUSD != nil || r.Lines[1].Unpriced != 1100 {
			t.Errorf("%d: %+v", restart, r)
		}
		if r.Total.Tokens != 3300 || r.Total.Unpriced != 1100 || r.Total.Processes != 3 || r.Total.Input != 3000 || r.Total.Output != 300 {
			t.Errorf("%d: %+v", restart, r.Total)
		}
		if got := cost("process"); len(got.Lines) != 3 || len(cost("day").Lines) != 1 || len(cost("agent").Lines) != 1 {
			t.Errorf("%d: %+v", restart, got)
		}
		s.Kill()
		s.Start()
		s.Settle()
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.ShowCost, ipc.CostRequest{By: "moon"}); types.CodeOf(err) != types.ErrInvalid {
		t.Error(err)
	}
}

func TestBudgetInDollarsIsKeptOrRefused(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		return llmtest.Reply{ToolCalls: appends(len(r.Messages)).ToolCalls, Usage: &llmtest.Usage{Input: 5000, Output: 100}}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	usd := 0.50
	_, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake", BudgetUSD: &usd}, Env: s.Env, Cwd: s.Work})
	if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "prices.yaml") || !strings.Contains(err.Error(), "unknown_price_usd_per_mtok") {
		t.Errorf("a model without a price: %v", err)
	}
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "claude-opus-5-5", BudgetUSD: &usd}})
	w := s.Wait(p.PID)
	if !w.Suspended || w.CostUSD > usd || w.CostUSD < usd/4 {
		t.Errorf("%+v", w)
	}
	if l := budgetOf(t, s, p.UUID.String())["work"]; l.USD.Limit == nil || *l.USD.Limit != usd || math.Abs(l.USD.Used-w.CostUSD) > 1e-9 || !strings.HasPrefix(l.Wait, "budget: too little left for the next call (needs about $0.") || !strings.HasSuffix(l.Wait, " of $0.500)") {
		t.Errorf("%+v", l)
	}
	if err := os.MkdirAll(filepath.Join(s.Home, ".config", "rnix"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(s.Home, ".config", "rnix", "config.yaml"), []byte("budget: {unknown_price_usd_per_mtok: 20}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	q := s.Spawn(ipc.SpawnRequest{Intent: "dear", ProcSpec: types.ProcSpec{Model: "fake", BudgetUSD: &usd}})
	if w := s.Wait(q.PID); !w.Suspended || w.CostUSD > usd || w.CostUSD == 0 {
		t.Errorf("at an assumed price: %+v", w)
	}
	r, err := ipc.Call(t.Context(), s.Client, ipc.AddBudget, ipc.AddBudgetRequest{Target: p.UUID.String(), USD: 0.25, Env: s.Env})
	if err != nil || len(r.Resumed) != 1 || *r.USD.Limit != 0.75 {
		t.Fatalf("%+v %v", r, err)
	}
	if w := s.Wait(r.Resumed[0]); !w.Suspended || w.CostUSD > 0.75 || w.CostUSD < usd/4 {
		t.Errorf("%+v", w)
	}
}
