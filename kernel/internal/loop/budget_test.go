package loop

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"rnix/internal/step"
	"rnix/types"
	"rnix/vfs"
)

// purse is the fake's budget.
type purse struct {
	limit    int // tokens; 0 = unlimited
	used     int
	answer   int   // what an answer may have
	refuse   error // of the next reservation
	prompts  []int
	counts   []int // of prompts, by the provider
	reserved bool
	settled  int
	cut      []*Response    // what was counted of requests without an answer
	marks    []*step.Answer // and recorded
	mark     error          // of the next record
}

func (f *fake) Spent() *Broke {
	if f.limit == 0 || f.used < f.limit {
		return nil
	}
	return &Broke{Wait: types.SuspendFor(types.SuspendBudget, fmt.Sprintf("budget: %d of %d tokens are used", f.used, f.limit)), Hint: "--budget N"}
}

func (f *fake) PerByte() (float64, bool) { return 0.5, false }

func (f *fake) Counted(_, _ string, _ Prompt, tokens int) { f.counts = append(f.counts, tokens) }

func (f *fake) Reserve(_ context.Context, q Prompt) (int, error) {
	if f.reserved {
		f.t.Fatalf("a second reservation")
	}
	f.prompts = append(f.prompts, q.Tokens)
	f.reserved = f.refuse == nil
	return f.answer, f.refuse
}

func (f *fake) Settle(r *Response) Cost {
	if !f.reserved {
		f.t.Fatalf("settled without a reservation")
	}
	f.reserved = false
	f.settled++
	if r == nil {
		return Cost{}
	}
	f.used += r.Usage.Input + r.Usage.Output + r.Usage.CacheRead + r.Usage.CacheWrite
	return Cost{USD: 0.25, From: "here"}
}

func (f *fake) CutOff(_ context.Context, a *step.Answer) error {
	f.marks = append(f.marks, a)
	return f.mark
}

// fakeBudget is the budget of a fake: both have a CutOff.
type fakeBudget struct{ *fake }

func (b fakeBudget) CutOff(r *Response) Cost {
	b.cut = append(b.cut, r)
	return b.Settle(r)
}

func TestEveryAnswerIsReservedForAndSettled(t *testing.T) {
	f := newFake(t)
	f.answer = 700
	asked := 0
	f.model = func(_ context.Context, n int, request []byte) (*Response, error) {
		var doc struct {
			Max int `json:"max_tokens"`
		}
		if err := json.Unmarshal(request, &doc); err != nil || doc.Max != f.answer || !f.reserved {
			t.Errorf("request %d: %d tokens, reserved %t, %v", n, doc.Max, f.reserved, err)
		}
		f.answer -= 100
		switch asked++; n {
		case 1:
			return calls(`read {}`), nil
		case 2:
			return nil, ErrHeld
		case 3:
			return said("done"), nil
		}
		return nil, nil
	}
	end := run(t, f, t.Context(), Config{})
	if end.Exit.Code != 0 || asked != 3 || f.settled != 3 || f.reserved {
		t.Fatalf("%+v, asked %d times, settled %d times", end, asked, f.settled)
	}
	if a := f.steps[0].Answer(); a.CostUSD != 0.25 || a.CostFrom != "here" {
		t.Errorf("%+v", a)
	}
}

func TestPromptIsReservedByWhatItsProviderCounts(t *testing.T) {
	f := newFake(t)
	f.tool = func(context.Context, *Action) (string, error) { return strings.Repeat("x", 3000), nil }
	var sizes []int
	f.model = func(_ context.Context, n int, request []byte) (*Response, error) {
		sizes = append(sizes, len(request))
		r := calls(`read {}`)
		r.Usage = Usage{Input: 100 * n, CacheRead: 50, Output: 7}
		if n == 4 {
			r = said("done")
		}
		return r, nil
	}
	run(t, f, t.Context(), Config{})
	if len(f.prompts) != 4 || f.prompts[0] < sizes[0]/2+promptRoom || f.prompts[0] > sizes[0]/2+promptRoom+64 {
		t.Fatalf("%v for %v", f.prompts, sizes)
	}
	for n := 1; n < 4; n++ { // what was counted, and half a token for a byte of what is new
		if got, least := f.prompts[n], 100*n+50+1500; got < least || got > least+200 {
			t.Errorf("prompt %d: %d were reserved, and %d are enough", n+1, got, least)
		}
	}
	if len(f.counts) != 4 || f.counts[1] != 250 {
		t.Errorf("%v were counted", f.counts)
	}
	c := counted{generation: 1, bytes: 100, tokens: 40}
	for _, got := range []int{c.promptSize(2, 120, 130, 0.5, true), c.promptSize(1, 90, 130, 0.5, true)} {
		if got != 65 {
			t.Error("another conversation is bounded by the count of the last one")
		}
	}
}

func TestTooLittleBudgetSuspendsBeforeTheStep(t *testing.T) {
	f := newFake(t)
	f.model = func(context.Context, int, []byte) (*Response, error) {
		f.refuse = &Broke{Wait: types.SuspendFor(types.SuspendBudget, "budget: 9 of 10 tokens are used"), Hint: "--budget N"}
		return calls(`read {}`), nil
	}
	end := run(t, f, t.Context(), Config{})
	if end.Exit.Code != 2 || end.Wait.SuspendReason != f.refuse.Error() || end.Hint == "" || len(f.steps) != 1 || f.asked != 1 {
		t.Errorf("%+v after %d steps", end, len(f.steps))
	}
	f.refuse = nil
	f.model = func(context.Context, int, []byte) (*Response, error) { return said("done"), nil }
	l, _ := New(Config{Budget: fakeBudget{f}, Compactor: f}, Progress{Step: 1}, f)
	if end := l.Run(t.Context()); end.Exit.Code != 0 || len(f.steps) != 2 || f.steps[1].StepNumber != 2 {
		t.Errorf("%+v, step %d", end, f.steps[1].StepNumber)
	}
}

// cut is what a model says that was cut off after some tokens of its answer.
func cut(err error, answer int) error {
	return &vfs.CutOff{Err: err, Provider: "p", Model: "m", Answer: answer}
}

func TestWhatWasCutOffCountsOnceForEachTimeItWasSent(t *testing.T) {
	errKilled := errors.New("killed")
	for _, c := range []struct {
		name  string
		model func(end context.CancelCauseFunc) func(context.Context, int, []byte) (*Response, error)
		marks int
		steps int
	}{
		{"a pause, twice", func(context.CancelCauseFunc) func(context.Context, int, []byte) (*Response, error) {
			return func(_ context.Context, n int, _ []byte) (*Response, error) {
				if n < 3 {
					return nil, cut(ErrHeld, 6)
				}
				return said("done"), nil
			}
		}, 2, 1},
		{"a kill", func(end context.CancelCauseFunc) func(context.Context, int, []byte) (*Response, error) {
			return func(ctx context.Context, _ int, _ []byte) (*Response, error) {
				end(errKilled)
				return nil, cut(vfs.Ended(ctx, "Call", ""), 6)
			}
		}, 1, 0},
		{"a stop of the daemon", func(end context.CancelCauseFunc) func(context.Context, int, []byte) (*Response, error) {
			return func(ctx context.Context, _ int, _ []byte) (*Response, error) {
				end(errStop)
				return nil, cut(vfs.Ended(ctx, "Call", ""), 6)
			}
		}, 1, 0},
		{"the step's time", func(context.CancelCauseFunc) func(context.Context, int, []byte) (*Response, error) {
			return func(ctx context.Context, _ int, _ []byte) (*Response, error) {
				<-ctx.Done()
				return nil, cut(vfs.Ended(ctx, "Call", ""), 6)
			}
		}, 1, 1},
		{"a pause before anything was sent", func(context.CancelCauseFunc) func(context.Context, int, []byte) (*Response, error) {
			return func(_ context.Context, n int, _ []byte) (*Response, error) {
				if n < 2 {
					return nil, ErrHeld
				}
				return said("done"), nil
			}
		}, 0, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, end := context.WithCancelCause(t.Context())
				defer end(nil)
				f := newFake(t)
				f.model = c.model(end)
				run(t, f, ctx, Config{StepTimeout: time.Minute})
				if len(f.marks) != c.marks || len(f.cut) != c.marks || len(f.steps) != c.steps || f.reserved {
					t.Fatalf("%d are recorded, %d counted, after %d steps", len(f.marks), len(f.cut), len(f.steps))
				}
				tokens := 0
				for i, a := range f.marks {
					if u := f.cut[i].Usage; a.Step != 1 || a.Input == 0 || a.Output != 6 || a.TokensUsed != a.Input+6 || !a.Estimated || a.Provider != "p" || a.Model != "m" ||
						a.CostUSD != 0.25 || a.CostFrom != "here" || a.Started.IsZero() || u.Input != a.Input || u.Output != a.Output {
						t.Errorf("%+v for %+v", a, f.cut[i])
					}
					tokens += a.TokensUsed
				}
				if last := f.progress; last.Tokens < tokens || last.Estimated != (c.marks > 0) || last.CostUSD < 0.25*float64(c.marks) {
					t.Errorf("%+v for %d tokens", last, tokens)
				}
				if c.steps == 1 && f.steps[0].Answer().TokensUsed > 15 {
					t.Errorf("the step has what was cut off too: %+v", f.steps[0].Answer())
				}
			})
		})
	}
}

func TestEstimateOfWhatWasCutOffIsNotMoreThanWasReserved(t *testing.T) {
	f := newFake(t)
	f.answer = 700
	f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
		switch n {
		case 1: // it counts far less than we would
			r := calls(`read {}`)
			r.Usage = Usage{Input: 1, Output: 1}
			return r, nil
		case 2:
			return nil, cut(ErrHeld, 10_000)
		}
		return said("done"), nil
	}
	run(t, f, t.Context(), Config{Specs: []byte(`[{"name":"read","description":"` + strings.Repeat("long ", 2000) + `","input_schema":{}}]`)})
	if len(f.marks) != 1 || f.marks[0].Output != 700 || f.marks[0].Input > f.prompts[1] {
		t.Fatalf("%+v of %v", f.marks, f.prompts)
	}
}

func TestProcessWhoseCutOffCannotBeRecordedEnds(t *testing.T) {
	f := newFake(t)
	f.mark = types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no room")
	f.record = f.mark
	f.model = func(context.Context, int, []byte) (*Response, error) { return nil, cut(ErrHeld, 1) }
	if end := run(t, f, t.Context(), Config{}); f.asked != 1 || types.CodeOf(end.Exit.Err) != types.ErrStorage {
		t.Errorf("%+v after %d questions", end, f.asked)
	}
}
