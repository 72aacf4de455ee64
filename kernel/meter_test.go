package kernel

import (
	"context"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/event"
	"rnix/internal/price"
	"rnix/internal/recovery"
	"rnix/internal/weigh"
	"rnix/types"
	"rnix/vfs"
)

// program is a model that is a program, whose requests are metered.
type program struct {
	device
}

func (*program) ModelCard() vfs.ModelCard {
	return vfs.ModelCard{Provider: "program", Driver: "agent", Metered: true}
}

// withProgram adds the model "program", which does as do says.
func withProgram(t *testing.T, do func(ctx context.Context, c vfs.Caller) (string, error)) func(*Config) {
	return func(c *Config) {
		err := c.Devices.Register("/dev/llm/program", func(string, vfs.OpenFlag) (vfs.VFSFile, error) {
			p := &program{}
			p.do = func(ctx context.Context, c vfs.Caller, _ []byte) (string, error) { return do(ctx, c) }
			return p, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		c.Catalog = prices(func(provider string) (price.Rate, string) {
			if provider == "vendor" {
				return price.Flat(10), "here"
			}
			return price.Rate{}, ""
		})
	}
}

func aRequest(bytes, answer int) Question {
	return Question{Names: []vfs.ModelName{{Provider: "program", Driver: "agent", Model: "m"}, {Provider: "vendor", Model: "m"}}, Bytes: bytes, Answer: answer,
		Weighed: true, Parts: []weigh.Part{{Sum: rand.Uint64(), Most: bytes}}}
}

// all is what a request can take at most: a token for each byte.
func all(q Question, m *Metering) Took {
	answer := q.Answer
	if m.Answer > 0 {
		answer = m.Answer
	}
	return Took{Input: q.Bytes, Output: answer, Model: "m"}
}

// usd is a budget.
func usd(dollars float64) func(*SpawnOpts) {
	return func(o *SpawnOpts) { o.Provider, o.BudgetUSD = "program", &dollars }
}

// A hundred families whose programs ask side by side, until nothing is left: no budget in dollars is exceeded, by what was used or reserved.
func TestProgramsNeverSpendMoreThanTheirBudget(t *testing.T) {
	for n := range uint64(100) {
		synctest.Test(t, func(t *testing.T) { // whoever spends the last of a budget is waited for
			var s *sys
			var root types.PID
			s = newSys(t, withProgram(t, func(ctx context.Context, c vfs.Caller) (string, error) {
				var all4 sync.WaitGroup
				for i := range uint64(4) {
					all4.Go(func() {
						rnd := rand.New(rand.NewPCG(n, i))
						for ctx.Err() == nil {
							q := aRequest(rnd.IntN(2000), 1+rnd.IntN(3000))
							m, err := s.Meter(ctx, c.UUID, q)
							if err != nil {
								return
							}
							if p, ok := s.Process(root); ok {
								if st := p.purse.State(); st.Limit.USD > 0 && st.Used.USD+st.Reserved.USD > st.Limit.USD {
									t.Errorf("over the budget: %+v", st)
								}
							}
							if rnd.IntN(4) == 0 {
								m.Drop()
								continue
							}
							if err := m.Settle(all(q, m)); err != nil {
								t.Error(err)
							}
						}
					})
				}
				all4.Wait()
				<-ctx.Done()
				return "", context.Cause(ctx)
			}))
			root, err := s.Spawn("lead", nil, SpawnOpts{Body: idler{}, ProcSpec: types.ProcSpec{BudgetUSD: new(0.5)}, WorkDir: "/"})
			if err != nil {
				t.Fatal(err)
			}
			var used price.USD
			for range 3 {
				pid := s.spawn(func(o *SpawnOpts) { o.Provider, o.ParentPID = "program", root })
				i, err := s.WaitInfo(t.Context(), pid)
				if err != nil || i.Parked.Why() != types.SuspendBudget {
					t.Fatalf("%+v %v", i, err)
				}
				used += price.FromFloat(i.CostUSD)
			}
			p, _ := s.Process(root)
			if st := p.purse.State(); st.Used.USD != used || st.Used.USD > st.Limit.USD || st.Reserved != (Amount{}) || st.Used.USD < st.Limit.USD/2 {
				t.Errorf("%+v, by its children %v", st, used)
			}
			_ = s.Kill(root, types.SIGKILL)
		})
	}
}

// Programs whose prompts grow, of which the vendor counts few tokens until it counts one for each byte: their budget is not exceeded. A conversation is
// reserved by what was counted of it, so that far more of it fits than by its bytes.
func TestWhatWasCountedBoundsOnlyWhatWasCounted(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *sys
		var few int
		var many atomic.Int64
		s = newSys(t, withProgram(t, func(ctx context.Context, c vfs.Caller) (string, error) {
			ask := func(q Question, tokens int) bool {
				m, err := s.Meter(ctx, c.UUID, q)
				if err != nil {
					return false
				}
				<-time.After(time.Second) // others ask meanwhile
				if err := m.Settle(Took{Input: tokens, Output: 1, Model: "m"}); err != nil {
					t.Error(err)
				}
				return true
			}
			talk := aRequest(10_000, 1)
			for few = 0; few < 20 && ask(talk, 1000+few*10); few++ { // blanks: 0.1 tokens for a byte
				talk.Parts = append(talk.Parts[:len(talk.Parts):len(talk.Parts)], weigh.Part{Sum: rand.Uint64(), Most: 100})
				talk.Bytes += 100
			}
			var all sync.WaitGroup
			for range 32 {
				all.Go(func() {
					for ask(aRequest(10_000, 1), 10_000) { // signs
						many.Add(1)
					}
				})
			}
			all.Wait()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		pid := s.spawn(usd(1))
		i, err := s.WaitInfo(t.Context(), pid)
		if err != nil || i.Parked.Why() != types.SuspendBudget || i.CostUSD > 1 || few != 20 || many.Load() < 5 {
			t.Errorf("%v, $%v, %d and %d requests: %+v", err, i.CostUSD, few, many.Load(), i.Parked)
		}
	})
}

// What cannot be bounded, or has another price, is refused where dollars are limited, and the process works on. Where tokens are, it is asked alone.
func TestOpenRequestsAreRefusedUnderABudgetInDollars(t *testing.T) {
	for name, c := range map[string]struct {
		limit      func(*SpawnOpts)
		open, odd  string
		refused    bool
		besides    bool // another one may be under way
		unweighed  bool
		refusedFor types.ErrCode
	}{
		"dollars, open":   {limit: usd(1), open: "tools: x", refused: true, refusedFor: types.ErrInvalid},
		"dollars, odd":    {limit: usd(1), odd: "speed: x", refused: true, refusedFor: types.ErrInvalid},
		"dollars, unseen": {limit: usd(1), unweighed: true, refused: true, refusedFor: types.ErrUnavailable},
		"tokens, open":    {limit: func(o *SpawnOpts) { o.Provider, o.ContextBudget = "program", new(100_000) }, open: "tools: x"},
		"tokens, odd":     {limit: func(o *SpawnOpts) { o.Provider, o.ContextBudget = "program", new(100_000) }, odd: "speed: x", besides: true},
		"no limit":        {limit: func(o *SpawnOpts) { o.Provider = "program" }, open: "tools: x", odd: "speed: x", unweighed: true, besides: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *sys
				s = newSys(t, withProgram(t, func(ctx context.Context, by vfs.Caller) (string, error) {
					q := aRequest(100, 10)
					q.Open, q.Odd, q.Weighed = c.open, c.odd, !c.unweighed
					m, err := s.Meter(ctx, by.UUID, q)
					if (err != nil) != c.refused || c.refused && types.CodeOf(err) != c.refusedFor {
						t.Errorf("%v", err)
					}
					if err == nil {
						short, cancel := context.WithTimeout(ctx, time.Second)
						second, err := s.Meter(short, by.UUID, q)
						if (err == nil) != c.besides {
							t.Errorf("a second one: %v", err)
						}
						if err == nil {
							second.Drop()
						}
						cancel()
						_ = m.Settle(Took{Input: 10, Output: 1, Model: "m"})
					}
					return `{"content":"done"}`, nil
				}))
				if i, err := s.WaitInfo(t.Context(), s.spawn(c.limit)); err != nil || i.Result != "done" {
					t.Errorf("%+v %v", i, err)
				}
			})
		})
	}
}

// What a request has taken is recorded, shown, and part of the next answer, and counts once.
func TestMeteredRequestsCountOnce(t *testing.T) {
	var s *sys
	turns := 0
	s = newSys(t, withProgram(t, func(ctx context.Context, c vfs.Caller) (string, error) {
		for range 2 {
			m, err := s.Meter(ctx, c.UUID, aRequest(100, 50))
			if err != nil {
				return "", err
			}
			if err := m.Settle(Took{Input: 30, Output: 5, CacheRead: 7, Model: "m"}); err != nil {
				return "", err
			}
			if i, err := s.Info(c.PID); err != nil || i.TokensUsed == 0 || i.TokensUsed%42 != 0 {
				return "", types.Errorf(types.ErrInternal, "", "", "it shows %d tokens, %v", i.TokensUsed, err)
			}
		}
		if turns++; turns == 1 {
			return `{"tool_calls":[{"id":"c","name":"tool","input":{}}],"usage":{"input_tokens":999}}`, nil
		}
		return `{"content":"done","usage":{"input_tokens":999}}`, nil
	}))
	s.tool = func(context.Context, vfs.Caller) (string, error) { return "ok", nil }
	i, err := s.WaitInfo(t.Context(), s.spawn(func(o *SpawnOpts) { o.Provider = "program" }))
	if err != nil || i.Result != "done" || i.TokensUsed != 4*42 || i.CostUSD != 4*42*10/1e6 || i.Model != "m" || len(i.Spending) != 1 || i.Spending[0].Answers != 4 {
		t.Fatalf("%+v %v", i, err)
	}
	r := s.stores.of(i.UUID)
	if got, want := r.kinds(), "spawn message metered metered message intent result message step metered metered message step exit"; got != want {
		t.Errorf("recorded %s\nwant     %s", got, want)
	}
	var state recovery.State
	for i := range r.committed {
		rec := r.committed[i]
		rec.Seq = uint64(i + 1)
		state.Apply(&rec)
		if rec.Step != nil && (rec.Step.TokensUsed != 84 || !rec.Step.Metered || rec.Step.CostFrom != "here") {
			t.Errorf("%+v", rec.Step)
		}
	}
	if state.Tokens != i.TokensUsed || price.FromFloat(state.CostUSD) != price.FromFloat(i.CostUSD) || len(state.Spending) != 1 || state.Spending[0].Tokens() != 168 {
		t.Errorf("it resumes with %d tokens, %v, %+v", state.Tokens, state.CostUSD, state.Spending)
	}
}

// A request that is refused while the process does something else suspends it at its next question, unless there is more by then.
func TestRefusedRequestSuspendsAtTheNextQuestion(t *testing.T) {
	for _, more := range []bool{false, true} {
		synctest.Test(t, func(t *testing.T) {
			var s *sys
			turns := 0
			s = newSys(t, withProgram(t, func(context.Context, vfs.Caller) (string, error) {
				if turns++; turns == 1 {
					return `{"tool_calls":[{"id":"c","name":"tool","input":{}}]}`, nil
				}
				return `{"content":"done"}`, nil
			}))
			s.tool = func(ctx context.Context, c vfs.Caller) (string, error) {
				_, err := s.Meter(ctx, c.UUID, aRequest(1<<20, 1000))
				if types.CodeOf(err) != types.ErrExhausted || !strings.Contains(err.Error(), "too little left for the next call") {
					return "", types.Errorf(types.ErrInternal, "", "", "not refused: %v", err)
				}
				if more {
					_, err = s.AddBudget(c.PID, Amount{USD: 100 * price.Dollar})
					return "ok", err
				}
				return "ok", nil
			}
			i, err := s.WaitInfo(t.Context(), s.spawn(usd(0.01)))
			if err != nil || more != (i.Result == "done") || more == (i.Parked.Why() == types.SuspendBudget) {
				t.Errorf("more %t: %+v %v", more, i, err)
			}
		})
	}
}

// What a program has done before the request that is refused is recorded, also if the process learns of it only then.
func TestWhatWasDoneBeforeARefusedRequestIsRecorded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *sys
		turns := 0
		refused := make(chan error, 1)
		s = newSys(t, withProgram(t, func(ctx context.Context, c vfs.Caller) (string, error) {
			if turns++; turns == 1 {
				go func() { // ends with what it sends
					_, err := s.Meter(context.WithoutCancel(ctx), c.UUID, aRequest(1<<20, 1000))
					refused <- err
				}()
			}
			wait := time.Minute
			if turns <= 3 {
				wait = caughtUp / 2
			}
			select {
			case <-time.After(wait):
				return `{"tool_calls":[{"id":"c","name":"tool","input":{}}]}`, nil
			case <-ctx.Done():
				return "", context.Cause(ctx)
			}
		}))
		s.tool = func(context.Context, vfs.Caller) (string, error) { return "ok", nil }
		i, err := s.WaitInfo(t.Context(), s.spawn(usd(0.01)))
		if err != nil || i.Parked.Why() != types.SuspendBudget || i.Step != 3 || turns != 4 || types.CodeOf(<-refused) != types.ErrExhausted {
			t.Errorf("%+v %v, asked %d times", i, err, turns)
		}
	})
}

// While it is waited until the process has caught up, there can be more, or the request can be given up: neither suspends the process.
func TestARequestThatIsGivenUpOrCanBePaidAfterAllSuspendsNobody(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(s *sys, pid types.PID, giveUp func()) error
		code      types.ErrCode
	}{
		"more": {func(s *sys, pid types.PID, _ func()) error {
			_, err := s.AddBudget(pid, Amount{USD: 100 * price.Dollar})
			return err
		}, ""},
		"given up": {func(_ *sys, _ types.PID, giveUp func()) error { giveUp(); return nil }, types.ErrUnavailable},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var s *sys
				s = newSys(t, withProgram(t, func(ctx context.Context, caller vfs.Caller) (string, error) {
					asks, giveUp := context.WithCancel(ctx)
					defer giveUp()
					done := make(chan error, 1)
					go func() { // ends with what it sends
						m, err := s.Meter(asks, caller.UUID, aRequest(1<<20, 1000))
						if err == nil {
							m.Drop()
						}
						done <- err
					}()
					<-time.After(caughtUp / 2)
					if err := c.meanwhile(s, caller.PID, giveUp); err != nil {
						return "", err
					}
					if err := <-done; types.CodeOf(err) != c.code {
						t.Errorf("%v", err)
					}
					return `{"content":"done"}`, nil
				}))
				i, err := s.WaitInfo(t.Context(), s.spawn(usd(0.01)))
				if err != nil || i.Result != "done" {
					t.Errorf("%+v %v", i, err)
				}
			})
		})
	}
}

// The end of a run gives up what is under way, and waits until it is counted.
func TestEndOfARunCountsWhatIsUnderWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s *sys
		settled := make(chan error, 1)
		s = newSys(t, withProgram(t, func(ctx context.Context, c vfs.Caller) (string, error) {
			m, err := s.Meter(context.Background(), c.UUID, aRequest(100, 50))
			if err != nil {
				return "", err
			}
			go func() {
				<-m.Context().Done()
				<-time.After(time.Second)
				settled <- m.Settle(Took{Input: 25, Output: 5, Estimated: true})
			}()
			<-ctx.Done()
			return "", context.Cause(ctx)
		}))
		pid := s.spawn(usd(1))
		s.await(pid, event.StepStarted)
		synctest.Wait()
		if err := s.Kill(pid, types.SIGKILL); err != nil {
			t.Fatal(err)
		}
		i, err := s.WaitInfo(t.Context(), pid)
		if err != nil || i.TokensUsed != 30 || !i.Estimated {
			t.Errorf("%+v %v", i, err)
		}
		if err := <-settled; err != nil {
			t.Error(err)
		}
		if got, want := s.stores.of(i.UUID).kinds(), "spawn message metered exit"; got != want {
			t.Errorf("recorded %s, want %s", got, want)
		}
		if _, err := s.Meter(t.Context(), i.UUID, aRequest(1, 1)); types.CodeOf(err) != types.ErrUnavailable {
			t.Errorf("a process that has ended asks: %v", err)
		}
	})
}

// Without a known price no request is made under a budget in dollars, and one for a model that nobody can budget does not begin.
func TestUnknownPriceSuspendsBeforeTheRequest(t *testing.T) {
	var s *sys
	s = newSys(t, withProgram(t, func(ctx context.Context, c vfs.Caller) (string, error) {
		_, err := s.Meter(ctx, c.UUID, Question{Names: []vfs.ModelName{{Provider: "program", Model: "unheard-of"}}, Bytes: 1, Answer: 1, Weighed: true})
		return "", err
	}))
	i, err := s.WaitInfo(t.Context(), s.spawn(usd(1)))
	if err != nil || !strings.Contains(i.Parked.SuspendReason, `no price is known for the model "unheard-of"`) {
		t.Errorf("%+v %v", i, err)
	}
	if _, err := s.Spawn("x", nil, opts(usd(1), func(o *SpawnOpts) { o.Model = "unheard-of" })); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("it begins with a model that has no price: %v", err)
	}
	pid := s.spawn(usd(1), func(o *SpawnOpts) { o.Model = "vendor/m" })
	_ = s.Kill(pid, types.SIGKILL)
}
