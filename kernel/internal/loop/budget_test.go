package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// purse is the fake's budget.
type purse struct {
	limit    int // tokens; 0 = unlimited
	used     int
	answer   int   // what an answer may have
	refuse   error // of the next reservation
	prompts  []int
	reserved bool
	settled  int
}

func (f *fake) Spent() *Broke {
	if f.limit == 0 || f.used < f.limit {
		return nil
	}
	return &Broke{Wait: fmt.Sprintf("budget: %d of %d tokens are used", f.used, f.limit), Hint: "--budget N"}
}

func (f *fake) Reserve(_ context.Context, prompt int) (int, error) {
	if f.reserved {
		f.t.Fatalf("a second reservation")
	}
	f.prompts = append(f.prompts, prompt)
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

func TestPromptIsNeverLargerThanReserved(t *testing.T) {
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
	if len(f.prompts) != 4 || f.prompts[0] < sizes[0] {
		t.Fatalf("%v for %v", f.prompts, sizes)
	}
	for n := 1; n < 4; n++ { // what was counted, and no less than a token for a byte of what is new
		if got, least := f.prompts[n], 100*n+50+3000; got < least || got > least+400 {
			t.Errorf("prompt %d: %d were reserved, and %d are enough", n+1, got, least)
		}
	}
	if c := (counted{generation: 1, bytes: 100, tokens: 40}); c.promptBound(2, 120, 130) != 130+promptRoom || c.promptBound(1, 90, 130) != 130+promptRoom {
		t.Error("another conversation is bounded by the count of the last one")
	}
}

func TestTooLittleBudgetSuspendsBeforeTheStep(t *testing.T) {
	f := newFake(t)
	f.model = func(context.Context, int, []byte) (*Response, error) {
		f.refuse = &Broke{Wait: "budget: 9 of 10 tokens are used", Hint: "--budget N"}
		return calls(`read {}`), nil
	}
	end := run(t, f, t.Context(), Config{})
	if end.Exit.Code != 2 || end.Wait != f.refuse.Error() || end.Hint == "" || len(f.steps) != 1 || f.asked != 1 {
		t.Errorf("%+v after %d steps", end, len(f.steps))
	}
	f.refuse = nil
	f.model = func(context.Context, int, []byte) (*Response, error) { return said("done"), nil }
	l, _ := New(Config{Start: Progress{Step: 1}, Budget: f}, f)
	if end := l.Run(t.Context()); end.Exit.Code != 0 || len(f.steps) != 2 || f.steps[1].StepNumber != 2 {
		t.Errorf("%+v, step %d", end, f.steps[1].StepNumber)
	}
}
