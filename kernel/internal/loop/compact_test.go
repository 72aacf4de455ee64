package loop

import (
	"context"
	"fmt"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/types"
	"rnix/vfs"
)

// long returns a host with a conversation of about 50,000 tokens, whose model answers "ok".
func long(t *testing.T) *fake {
	f := newFake(t)
	for i := range 20 {
		id := fmt.Sprint(i)
		_ = f.mgr.Append(f.cid, rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: id, Name: "read", Input: []byte("{}")}}},
			rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: strings.Repeat("text ", 2000)})
	}
	f.model = script(said("ok"))
	return f
}

func sumsUp(text string) *Response {
	r := said(text)
	r.Usage = Usage{Input: 40_000, Output: 500}
	return r
}

func TestAFullWindowIsSummedUpByTheModel(t *testing.T) {
	f := long(t)
	f.aside = func(_ context.Context, ms []rnixctx.Message) (*Response, error) {
		if q := ms[len(ms)-1]; q.Role != rnixctx.RoleUser || !strings.Contains(q.Content, "Write a summary") || len(ms) != 42 {
			t.Errorf("%d messages, the last one %+v", len(ms), q)
		}
		return sumsUp("All is read."), nil
	}
	f.model = func(_ context.Context, _ int, req []byte) (*Response, error) {
		if s := string(req); len(s) > 120_000 || !strings.Contains(s, "All is read.") || !strings.Contains(s, "the steps") || !strings.Contains(s, "do it") || strings.Contains(s, `"aside"`) {
			t.Errorf("%d bytes: %.300s", len(s), s)
		}
		return said("ok"), nil
	}
	end := run(t, f, t.Context(), Config{Window: 50_000, Aside: true, Now: present{plan: "the steps"}})
	if end.Result != "ok" || len(f.reports) != 1 || !f.reports[0].Summary || f.took[0] == nil || f.took[0].TokensUsed != 40_500 || f.took[0].Step != 1 {
		t.Fatalf("%+v %+v", end, f.reports)
	}
	if f.progress.Tokens < 40_500 || f.settled != 2 {
		t.Errorf("the summary does not count: %+v, settled %d times", f.progress, f.settled)
	}
}

func TestWithoutASummaryTheOldestIsLeftOut(t *testing.T) {
	for name, c := range map[string]struct {
		aside  func(context.Context, []rnixctx.Message) (*Response, error)
		refuse bool
		why    string
		cost   bool
	}{
		"failed": {func(context.Context, []rnixctx.Message) (*Response, error) {
			return nil, types.Errorf(types.ErrDriver, "Call", "", "it is no model")
		}, false, "it is no model", false},
		"too long": {func(context.Context, []rnixctx.Message) (*Response, error) {
			return nil, types.Errorf(types.ErrInvalid, "Call", "", "prompt is too long: 7")
		}, false, "too long", false},
		"empty": {func(context.Context, []rnixctx.Message) (*Response, error) { return sumsUp(" "), nil }, false, "written none", true},
		"only acts": {func(context.Context, []rnixctx.Message) (*Response, error) {
			r := calls(`read {}`)
			r.Usage = sumsUp("").Usage
			return r, nil
		}, false, "written none", true},
		"cut off": {func(context.Context, []rnixctx.Message) (*Response, error) {
			return nil, &vfs.CutOff{Err: types.Errorf(types.ErrTimeout, "Call", "", "late"), Answer: 9}
		}, false, "late", false},
	} {
		t.Run(name, func(t *testing.T) {
			f := long(t)
			f.aside = c.aside
			end := run(t, f, t.Context(), Config{Window: 50_000, Aside: true})
			if end.Result != "ok" || len(f.reports) != 1 || f.reports[0].Summary || !strings.Contains(f.reports[0].Failed, c.why) || (f.took[0] != nil) != c.cost {
				t.Fatalf("%+v %+v", end, f.reports)
			}
		})
	}
}

// What goes by costs no part of the conversation: the question meets it, too, and waits for its end.
func TestWhatGoesByLeavesOutNothing(t *testing.T) {
	for _, code := range []types.ErrCode{types.ErrRateLimited, types.ErrUnavailable, types.ErrDisconnected, types.ErrAuth} {
		f := long(t)
		f.aside = func(context.Context, []rnixctx.Message) (*Response, error) {
			return nil, types.Errorf(code, "Call", "", "later")
		}
		if end := run(t, f, t.Context(), Config{Window: 50_000, Aside: true}); end.Result != "ok" || len(f.reports) != 0 {
			t.Errorf("%s: %+v %+v", code, end, f.reports)
		}
		f = long(t)
		f.wanted = new("")
		f.aside = func(context.Context, []rnixctx.Message) (*Response, error) {
			return nil, types.Errorf(code, "Call", "", "later")
		}
		if end := run(t, f, t.Context(), Config{Aside: true}); end.Result != "ok" || len(f.reports) != 1 || f.reports[0].Dropped+f.reports[0].Shortened != 0 || !strings.Contains(f.reports[0].Failed, "later") {
			t.Errorf("%s, wanted: %+v %+v", code, end, f.reports)
		}
	}
}

func TestTooLittleBudgetForASummaryLeavesOutTheOldest(t *testing.T) {
	f := long(t)
	f.refuse = &Broke{Wait: types.SuspendFor(types.SuspendBudget, "budget: none")}
	f.aside = func(context.Context, []rnixctx.Message) (*Response, error) {
		t.Error("asked without budget")
		return nil, nil
	}
	end := run(t, f, t.Context(), Config{Window: 50_000, Aside: true})
	if !end.Wait.Waits() || len(f.reports) != 1 || !strings.Contains(f.reports[0].Failed, "too little of the budget") {
		t.Fatalf("%+v %+v", end, f.reports)
	}
}

func TestAPauseHoldsASummary(t *testing.T) {
	f := long(t)
	asked := 0
	f.aside = func(context.Context, []rnixctx.Message) (*Response, error) {
		if asked++; asked == 1 {
			return nil, ErrHeld
		}
		if len(f.reports) > 0 {
			t.Error("half of it is recorded")
		}
		return sumsUp("All is read."), nil
	}
	if end := run(t, f, t.Context(), Config{Window: 50_000, Aside: true}); end.Result != "ok" || asked != 2 || len(f.reports) != 1 || !f.reports[0].Summary {
		t.Fatalf("%+v, asked %d times, %+v", end, asked, f.reports)
	}
}

func TestAWishIsFulfilledOnce(t *testing.T) {
	for name, aside := range map[string]bool{"summary": true, "no model": false} {
		t.Run(name, func(t *testing.T) {
			f := long(t)
			focus := "the names"
			f.wanted = &focus
			f.aside = func(_ context.Context, ms []rnixctx.Message) (*Response, error) {
				if q := ms[len(ms)-1].Content; !strings.Contains(q, "keep this: the names") {
					t.Errorf("%q", q)
				}
				return sumsUp("All is read."), nil
			}
			end := run(t, f, t.Context(), Config{Aside: aside})
			if end.Result != "ok" || len(f.reports) != 1 || f.reports[0].Summary != aside || f.wanted != nil || f.reports[0].After > f.reports[0].Before*6/10 {
				t.Fatalf("%+v %+v", end, f.reports)
			}
		})
	}
	f := newFake(t)
	f.model, f.wanted = script(said("ok")), new(string)
	if end := run(t, f, t.Context(), Config{Aside: true}); end.Result != "ok" || len(f.reports) != 1 || f.reports[0].Failed == "" || f.wanted != nil {
		t.Fatalf("nothing to sum up: %+v %+v", end, f.reports)
	}
}

func TestAWishThatComesInACompactionIsMetAfterIt(t *testing.T) {
	for name, window := range map[string]int{"wanted": 0, "full": 50_000} {
		f := long(t)
		if window == 0 {
			f.wanted = new("the names")
		}
		asked := []string{}
		f.aside = func(_ context.Context, ms []rnixctx.Message) (*Response, error) {
			if asked = append(asked, ms[len(ms)-1].Content); len(asked) == 1 {
				f.wanted, f.wishes = new("the numbers"), f.wishes+1
			}
			return sumsUp("All is read."), nil
		}
		end := run(t, f, t.Context(), Config{Window: window, Aside: true})
		if end.Result != "ok" || len(f.reports) != 2 || f.wanted != nil || f.asked != 1 {
			t.Fatalf("%s: %+v %+v", name, end, f.reports)
		}
		if window > 0 && (len(asked) != 2 || !strings.Contains(asked[1], "keep this: the numbers")) {
			t.Errorf("%s: %q", name, asked)
		}
	}
}

func TestATooLongPromptIsSummedUpOnce(t *testing.T) {
	f := long(t)
	asides := 0
	f.aside = func(_ context.Context, ms []rnixctx.Message) (*Response, error) {
		if asides++; len(fmt.Sprint(ms)) > 120_000 {
			t.Error("the question is as long as what was too long")
		}
		return sumsUp(strings.Repeat("much ", 5000)), nil
	}
	f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
		if n < 3 {
			return nil, types.Errorf(types.ErrInvalid, "Write", "/dev/llm/x", "prompt is too long: 200000 tokens")
		}
		return said("ok"), nil
	}
	if end := run(t, f, t.Context(), Config{Aside: true}); end.Result != "ok" || asides != 1 || len(f.reports) != 2 {
		t.Fatalf("%+v, %d questions, %+v", end, asides, f.reports)
	}
}

// In a small window most is tools: a step or two fill the rest, and a summary for each would cost more than the work.
func TestASmallWindowPaysForNoSummaryInEachStep(t *testing.T) {
	specs := []byte(`[{"name":"read","description":"` + strings.Repeat("word", 5500) + `"}]`)
	for name, c := range map[string]struct{ answer, asides, reports int }{
		"little in a step": {1500, 0, 40},
		"nothing to cut":   {20, 0, 0},
	} {
		f := newFake(t)
		f.tool = func(context.Context, *Action) (string, error) { return strings.Repeat("text ", c.answer/5), nil }
		f.model = func(_ context.Context, n int, req []byte) (*Response, error) {
			if n == 40 || c.reports == 0 && n == 4 {
				return said("ok"), nil
			}
			r := calls(fmt.Sprintf(`read {"n":%d}`, n))
			r.Usage.Input = len(req) / 4
			return r, nil
		}
		asides := 0
		f.aside = func(context.Context, []rnixctx.Message) (*Response, error) {
			asides++
			return sumsUp("All is read."), nil
		}
		window := 8000
		if c.reports == 0 {
			window = 6000 // the tools alone are more than FullAt of it
		}
		end := run(t, f, t.Context(), Config{Window: window, Aside: true, Specs: specs})
		if end.Result != "ok" || asides > c.asides || len(f.reports) > c.reports || c.reports > 0 && len(f.reports) == 0 {
			t.Errorf("%s: %+v, %d summaries, %d compactions", name, end, asides, len(f.reports))
		}
	}
}

// Who asks for a compaction is told what became of it, also where the window is full and nothing can be made shorter.
func TestAWishInAFullWindowIsAnswered(t *testing.T) {
	f := newFake(t)
	f.model, f.wanted = script(said("ok")), new("the names")
	specs := []byte(`[{"name":"read","description":"` + strings.Repeat("word", 5500) + `"}]`)
	end := run(t, f, t.Context(), Config{Window: 6000, Aside: true, Specs: specs})
	if end.Result != "ok" || len(f.reports) != 1 || f.reports[0].Failed == "" || f.wanted != nil {
		t.Errorf("%+v %+v", end, f.reports)
	}
}
