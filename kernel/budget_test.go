package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"pgregory.net/rapid"

	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/purse"
	"rnix/types"
	"rnix/vfs"
)

// greedy is a model that takes everything it may: half a token for each byte of the prompt, which is as much as is
// expected of a model that has not counted yet, and an answer as long as it was allowed.
type greedy struct {
	device
	card vfs.ModelCard
}

func (g *greedy) ModelCard() vfs.ModelCard { return g.card }

// withGreedy adds the greedy model as "greedy". seen is called with each request.
func withGreedy(t *testing.T, card vfs.ModelCard, seen func(limit, prompt int)) func(*Config) {
	return func(c *Config) {
		err := c.Devices.Register("/dev/llm/greedy", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			g := &greedy{card: card}
			g.do = func(_ context.Context, _ vfs.Caller, data []byte) (string, error) {
				var req struct {
					Max      int               `json:"max_tokens"`
					Messages []json.RawMessage `json:"messages"`
				}
				if err := json.Unmarshal(data, &req); err != nil {
					return "", err
				}
				seen(req.Max, len(data))
				return fmt.Sprintf(`{"tool_calls":[{"id":"c","name":"tool","input":{}}],"usage":{"input_tokens":%d,"output_tokens":%d},"model":"greedy","provider":"greedy"}`, len(data)/2, req.Max), nil
			}
			return g, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Catalog = prices(func(provider string) (price.Rate, string) {
			if provider == "greedy" {
				return price.Flat(10), "here"
			}
			return price.Rate{}, ""
		})
	}
}

// idler is a body that waits for its end.
type idler struct{}

func (idler) Attach(Self, *recovery.State) error { return nil }
func (idler) Record() (step.BodyRecord, error) {
	return step.BodyRecord{Kind: "idler", Spec: []byte("{}")}, nil
}
func (idler) Joined(*Process) {}
func (idler) Ended(*Process)  {}
func (idler) Run(ctx context.Context) End {
	<-ctx.Done()
	return End{Cause: context.Cause(ctx)}
}

// exceeded reports whether what a family has used and reserved is more than it may: in dollars anything over the limit,
// in tokens what goes over it by more than one answer. asking says that an answer is under way.
func exceeded(st Budget, asking bool, most int) bool {
	if asking {
		most = 0 // and what is reserved may go over it
	}
	return st.Used.Tokens >= st.Limit.Tokens+max(most, 1) || st.Limit.USD > 0 && st.Used.USD+st.Reserved.USD > st.Limit.USD
}

// However many processes draw on one budget, at once and in whatever tree, and however much each of their
// answers takes of what it was allowed: the budget is not exceeded in dollars, and in tokens by one answer at most.
func TestFamilyNeverExceedsItsBudgetByTwoAnswers(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		card := vfs.ModelCard{Provider: "greedy", Model: "greedy", MaxAnswer: 2000}
		var s *sys
		var root types.PID
		var most atomic.Int64
		over := func(limit, prompt int) {
			for n := int64(prompt/2 + limit); most.Load() < n; {
				most.Store(n)
			}
			if limit < leastAnswer || limit > card.MaxAnswer {
				r.Errorf("an answer may have %d tokens", limit)
			}
			if p, ok := s.Process(root); ok {
				if st := p.purse.State(); exceeded(st, true, 0) {
					r.Errorf("over the budget: %+v", st)
				}
			}
		}
		s = newSys(t, withGreedy(t, card, over))
		s.tool = func(context.Context, vfs.Caller) (string, error) { return "ok", nil }
		tokens, usd := rapid.IntRange(5_000, 60_000).Draw(r, "tokens"), float64(rapid.IntRange(0, 60).Draw(r, "cents"))/100
		below := func(up types.PID, o *SpawnOpts) { o.Provider, o.ParentPID = "greedy", up }
		root, err := s.Spawn("lead", nil, SpawnOpts{Body: idler{}, ProcSpec: types.ProcSpec{ContextBudget: &tokens, BudgetUSD: &usd}, WorkDir: "/"})
		if err != nil {
			r.Fatal(err)
		}
		var wg sync.WaitGroup
		for range rapid.IntRange(1, 5).Draw(r, "children") {
			own := rapid.IntRange(0, 20_000).Draw(r, "own")
			deep := rapid.Bool().Draw(r, "deep")
			wg.Go(func() {
				pid, err := s.Spawn("child", nil, opts(func(o *SpawnOpts) { below(root, o); o.ContextBudget = &own }))
				if err != nil {
					r.Errorf("%v", err)
					return
				}
				if deep {
					if kid, kerr := s.Spawn("grandchild", nil, opts(func(o *SpawnOpts) { below(pid, o) })); kerr == nil {
						wg.Go(func() { _, _ = s.WaitInfo(t.Context(), kid) })
					}
				}
				i, err := s.WaitInfo(t.Context(), pid)
				if err == nil && !strings.HasPrefix(i.Parked.SuspendReason, "budget") && i.Exit != nil && i.Exit.Code != types.ExitNoProgress {
					r.Errorf("%+v: %s", i.Exit, i.Parked)
				}
			})
		}
		wg.Wait()
		p, ok := s.Process(root)
		if !ok {
			r.Fatal("the root is gone")
		}
		if st := p.purse.State(); st.Reserved != (Amount{}) || exceeded(st, false, int(most.Load())) {
			r.Errorf("%+v of %d tokens and %v dollars", st, tokens, usd)
		}
		_ = s.Kill(root, types.SIGKILL)
		_, _ = s.WaitInfo(t.Context(), root)
	})
}

func TestBudgetInDollarsNeedsAPrice(t *testing.T) {
	s := newSys(t, withGreedy(t, vfs.ModelCard{Provider: "greedy", Model: "greedy", MaxAnswer: 1000}, func(int, int) {}))
	s.model = finish("done")
	s.tool = func(context.Context, vfs.Caller) (string, error) { return "ok", nil }
	usd := 0.5
	if _, err := s.Spawn("do it", nil, opts(func(o *SpawnOpts) { o.BudgetUSD = &usd })); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), "no price is known") {
		t.Errorf("%v", err)
	}
	if i := len(s.Proc().Processes()); i != 0 {
		t.Errorf("%d processes are left", i)
	}
	i, err := s.WaitInfo(t.Context(), s.spawn(func(o *SpawnOpts) { o.BudgetUSD = &usd; o.Provider = "greedy" }))
	if err != nil || !strings.HasPrefix(i.Parked.SuspendReason, "budget: too little left for the next call (needs about $") || i.CostUSD == 0 || i.CostUSD > usd || i.Unpriced != 0 {
		t.Errorf("%+v %v", i, err)
	}
	// without a budget in dollars what is not known stays so
	if i, err = s.WaitInfo(t.Context(), s.spawn()); err != nil || i.Unpriced != 7 || i.CostUSD != 0 || len(i.Spending) != 1 || i.Spending[0].Unpriced != 7 {
		t.Errorf("%+v %v", i, err)
	}
}

func TestBudgetThatIsTooSmallSaysWhatIsNeededAndWhatIsThere(t *testing.T) {
	dollars := func(f float64) Amount { return Amount{USD: price.FromFloat(f)} }
	for want, s := range map[string]purse.Short{
		"too little left for the next call (needs about $0.200, has $0.100 of $0.500)": {Need: dollars(0.2), Limit: dollars(0.5), Used: dollars(0.4), USD: true},
		"too little left for the next call (needs about $0.200, has $0 of $0.500)":     {Need: dollars(0.2), Limit: dollars(0.5), Used: dollars(0.6), USD: true},
		"$0.600 of $0.500 are used":        {Limit: dollars(0.5), Used: dollars(0.6), USD: true},
		"32,010 of 30,000 tokens are used": {Limit: Amount{Tokens: 30000}, Used: Amount{Tokens: 32010}},
	} {
		if got := shortText(&s); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestRaisedBudgetIsInTheRecordAndWakesWhoWaits(t *testing.T) {
	s := newSys(t)
	s.model = untilKilled
	limit, none := 100, 0
	pid := s.spawn(func(o *SpawnOpts) { o.ContextBudget = &limit })
	got, err := s.AddBudget(pid, Amount{Tokens: 50})
	if i, _ := s.Info(pid); err != nil || got.Tokens != 150 || i.ContextBudget != 150 {
		t.Errorf("%+v %v", got, err)
	}
	if _, err := s.AddBudget(pid, Amount{USD: 1}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a limit came out of nothing: %v", err)
	}
	if _, err := s.AddBudget(s.spawn(func(o *SpawnOpts) { o.ContextBudget = &none }), Amount{Tokens: 1}); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("a limit came out of nothing: %v", err)
	}
	if _, err := s.AddBudget(9999, Amount{Tokens: 1}); types.CodeOf(err) != types.ErrNotFound {
		t.Error(err)
	}
}
