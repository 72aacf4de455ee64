package kernel

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"pgregory.net/rapid"

	"rnix/agent"
	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// sending is a model that says of what was cut off that it had been sent, and that so many tokens had come.
func sending(came int) func(ctx context.Context, _ vfs.Caller, _ int) (reply, error) {
	return func(ctx context.Context, _ vfs.Caller, _ int) (reply, error) {
		<-ctx.Done()
		return reply{}, &vfs.CutOff{Err: vfs.Ended(ctx, "Call", "m"), Provider: "m", Model: "big", Answer: came}
	}
}

// flat has every model cost ten dollars a million tokens.
func flat(c *Config) {
	c.Catalog = prices(func(string) (price.Rate, string) { return price.Flat(10), "here" })
}

// state is what the committed records of a history amount to.
func (s *sys) state(id types.UUID) *recovery.State {
	state := new(recovery.State)
	r := s.stores.of(id)
	r.mu.Lock()
	defer r.mu.Unlock()
	for i := range r.committed {
		r.committed[i].Seq = uint64(i + 1)
		state.Apply(&r.committed[i])
	}
	return state
}

func TestWhatWasCutOffIsPaidForOnceAndStaysPaid(t *testing.T) {
	kill := func(s *sys, p *Process) { _ = s.Signal(p.PID, types.SIGKILL) }
	for _, c := range []struct {
		name  string
		times int
		cut   func(s *sys, p *Process)
		opts  func(o *SpawnOpts)
	}{
		{"kill", 1, kill, nil},
		{"term", 1, func(s *sys, p *Process) { _ = s.Signal(p.PID, types.SIGTERM) }, nil},
		{"timeout", 1, func(*sys, *Process) { time.Sleep(2 * time.Hour) }, func(o *SpawnOpts) { o.Timeout = time.Hour }},
		{"step timeout", 1, func(*sys, *Process) { time.Sleep(2 * time.Hour) }, nil},
		{"pause, and kill while it is paused", 1, func(s *sys, p *Process) {
			_ = s.Signal(p.PID, types.SIGPAUSE)
			synctest.Wait()
			if n := s.state(p.UUID).Tokens; n == 0 {
				t.Error("a crash now would lose it")
			}
			kill(s, p)
		}, nil},
		{"pause, and kill of the second try", 2, func(s *sys, p *Process) {
			_ = s.Signal(p.PID, types.SIGPAUSE)
			synctest.Wait()
			_ = s.Signal(p.PID, types.SIGRESUME)
			synctest.Wait()
			kill(s, p)
		}, nil},
		{"stop", 1, func(s *sys, _ *Process) { _ = s.Shutdown(context.Background()) }, nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSys(t, flat)
				s.model = sending(40)
				tokens := 100_000
				usd := 5.0
				ag := &agent.Agent{Manifest: agent.Manifest{StepTimeout: agent.Off}}
				if c.name == "step timeout" {
					ag.StepTimeout = agent.Duration(time.Hour)
				}
				pid, err := s.Spawn("do it", ag, opts(func(o *SpawnOpts) {
					if o.ContextBudget, o.BudgetUSD = &tokens, &usd; c.opts != nil {
						c.opts(o)
					}
				}))
				if err != nil {
					t.Fatal(err)
				}
				p, _ := s.Process(pid)
				synctest.Wait()
				c.cut(s, p)
				synctest.Wait()
				i, rate := s.table.current(p), price.Flat(10)
				got, used := i, p.purse.State()
				each := got.TokensUsed / c.times
				if each <= 40 || got.TokensUsed != c.times*each || !got.Estimated || got.Unpriced != 0 || used.Used.Tokens != got.TokensUsed || used.Reserved != (Amount{}) ||
					used.Used.USD != price.FromFloat(got.CostUSD) || used.Used.USD != rate.Cost(price.Tokens{Input: got.TokensUsed}) {
					t.Fatalf("%+v, the purse has %+v", got, used)
				}
				if sp := got.Spending; len(sp) != 1 || sp[0].Tokens() != got.TokensUsed || sp[0].Output != 40*c.times || sp[0].Answers != 0 || sp[0].Model != "big" || !sp[0].Estimated {
					t.Errorf("%+v", sp)
				}
				st := s.state(p.UUID)
				if st.Tokens != got.TokensUsed || st.CostUSD != got.CostUSD || !st.Estimate || len(st.Spending) != 1 || st.Spending[0] != got.Spending[0] {
					t.Errorf("recorded is %+v", st)
				}
				h, err := step.Fold(p.UUID, func(yield func(step.Record, error) bool) {
					for _, r := range s.stores.of(p.UUID).committed {
						if !yield(r, nil) {
							return
						}
					}
				})
				if info := h.Info(); err != nil || info.TokensUsed != got.TokensUsed || info.CostUSD != got.CostUSD || info.Spending[0] != got.Spending[0] {
					t.Errorf("the small file has %+v, %v", info, err)
				}
				again := newSys(t, flat)
				again.model, again.stores.recs = untilKilled, s.stores.recs
				resumed, err := again.Spawn("do it", nil, opts(func(o *SpawnOpts) {
					o.UUID, o.From, o.ContextBudget, o.BudgetUSD = p.UUID, again.lastRun(p.UUID), &tokens, &usd
				}))
				if err != nil {
					t.Fatal(err)
				}
				synctest.Wait()
				q, _ := again.Process(resumed)
				if u := q.purse.State().Used; u != used.Used || again.table.current(q).TokensUsed != got.TokensUsed {
					t.Errorf("a later run begins with %+v of %+v", u, used.Used)
				}
			})
		})
	}
}

// What has no price but the word of who would have answered does not take all that is left of a budget in dollars.
func TestCutOffWithoutAPriceCountsInTokens(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		card := vfs.ModelCard{Provider: "says", SaysCost: true}
		s := newSys(t, func(c *Config) {
			err := c.Devices.Register("/dev/llm/says", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
				g := &greedy{card: card}
				g.do = func(ctx context.Context, _ vfs.Caller, _ []byte) (string, error) {
					<-ctx.Done()
					return "", &vfs.CutOff{Err: vfs.Ended(ctx, "Call", ""), Provider: "says"}
				}
				return g, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		usd := 5.0
		pid := s.spawn(func(o *SpawnOpts) { o.Provider, o.BudgetUSD = "says", &usd })
		synctest.Wait()
		_ = s.Signal(pid, types.SIGPAUSE)
		synctest.Wait()
		_ = s.Signal(pid, types.SIGRESUME)
		synctest.Wait()
		i, err := s.Info(pid)
		if err != nil || i.Parked.Waits() || i.TokensUsed == 0 || i.Unpriced != i.TokensUsed || i.CostUSD != 0 {
			t.Errorf("%+v %v", i, err)
		}
	})
}

// Whatever is cut off, and however often: what a family has used and reserved never exceeds its budget by more than one
// answer, and what is on record is what was counted.
func TestFamilyWhoseCallsAreCutOffKeepsItsBudget(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		card := vfs.ModelCard{Provider: "greedy", Model: "greedy", MaxAnswer: 2000}
		hanging := make(chan types.PID)
		var mu sync.Mutex
		cuts := map[types.PID][]int{} // what becomes of each question of a process: 0 = it is answered, 1 = a pause, 2 = a kill
		s := newSys(t, func(c *Config) {
			flat(c)
			err := c.Devices.Register("/dev/llm/greedy", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
				g := &greedy{card: card}
				g.do = func(ctx context.Context, who vfs.Caller, data []byte) (string, error) {
					var req struct {
						Max int `json:"max_tokens"`
					}
					if err := json.Unmarshal(data, &req); err != nil {
						return "", err
					}
					mu.Lock()
					next := 0
					if list := cuts[who.PID]; len(list) > 0 {
						next, cuts[who.PID] = list[0], list[1:]
					}
					mu.Unlock()
					if next > 0 {
						select {
						case hanging <- types.PID(next)<<32 | who.PID:
						case <-ctx.Done():
						}
						<-ctx.Done()
						return "", &vfs.CutOff{Err: vfs.Ended(ctx, "Call", ""), Provider: "greedy", Model: "greedy", Answer: 1 << 20}
					}
					return fmt.Sprintf(`{"tool_calls":[{"id":"c","name":"tool","input":{}}],"usage":{"input_tokens":%d,"output_tokens":%d},"model":"greedy","provider":"greedy"}`, len(data)/2, req.Max), nil
				}
				return g, nil
			})
			if err != nil {
				t.Fatal(err)
			}
		})
		s.tool = func(context.Context, vfs.Caller) (string, error) { return "ok", nil }
		tokens, usd := rapid.IntRange(5_000, 60_000).Draw(r, "tokens"), float64(rapid.IntRange(0, 60).Draw(r, "cents"))/100
		root, err := s.Spawn("lead", nil, SpawnOpts{Body: idler{}, ProcSpec: types.ProcSpec{ContextBudget: &tokens, BudgetUSD: &usd}, WorkDir: "/"})
		if err != nil {
			r.Fatal(err)
		}
		lead, _ := s.Process(root)
		within := func() {
			if st := lead.purse.State(); exceeded(st, false, 20_000) {
				r.Errorf("over the budget: %+v", st)
			}
		}
		var cutter, kids sync.WaitGroup
		cutter.Go(func() {
			for what := range hanging {
				pid := what & (1<<32 - 1)
				within()
				if what>>32 == 2 {
					_ = s.Signal(pid, types.SIGKILL)
					continue
				}
				_ = s.Signal(pid, types.SIGPAUSE)
				_ = s.Signal(pid, types.SIGRESUME)
				within()
			}
		})
		used, n := make(chan Amount, 8), rapid.IntRange(1, 5).Draw(r, "children")
		for range n {
			list := rapid.SliceOfN(rapid.IntRange(0, 2), 0, 6).Draw(r, "cuts")
			kids.Go(func() {
				mu.Lock() // nobody asks before it is known what becomes of it
				pid, err := s.Spawn("child", nil, opts(func(o *SpawnOpts) { o.Provider, o.ParentPID = "greedy", root }))
				cuts[pid] = list
				mu.Unlock()
				if err != nil {
					r.Errorf("%v", err)
					return
				}
				p, _ := s.Process(pid)
				i, err := s.WaitInfo(t.Context(), pid)
				if err != nil {
					r.Errorf("%v", err)
					return
				}
				st := s.state(p.UUID)
				if st.Tokens != i.TokensUsed || st.CostUSD != i.CostUSD {
					r.Errorf("recorded are %d tokens, $%v, counted %d, $%v", st.Tokens, st.CostUSD, i.TokensUsed, i.CostUSD)
				}
				used <- Amount{Tokens: st.Tokens, USD: price.FromFloat(st.CostUSD)}
			})
		}
		kids.Wait()
		close(hanging)
		cutter.Wait()
		close(used)
		var sum Amount
		for a := range used {
			sum.Tokens, sum.USD = sum.Tokens+a.Tokens, sum.USD+a.USD
		}
		if st := lead.purse.State(); st.Reserved != (Amount{}) || st.Used.Tokens != sum.Tokens || exceeded(st, false, 20_000) {
			r.Errorf("%+v of %d tokens and %v dollars; on record are %+v", st, tokens, usd, sum)
		}
		_ = s.Kill(root, types.SIGKILL)
		_, _ = s.WaitInfo(t.Context(), root)
	})
}
