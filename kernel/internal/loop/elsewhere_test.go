package loop

import (
	"context"
	"encoding/json"
	"errors"
	"testing"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

func TestACallThatWasRunElsewhereIsOnRecordAndNotRun(t *testing.T) {
	f := newFake(t)
	f.model = func(_ context.Context, n int, request []byte) (*Response, error) {
		switch n {
		case 1:
			return &Response{Content: "look", ToolCalls: []rnixctx.ToolCall{
				{ID: "a", Name: "Bash", Input: json.RawMessage(`{"command":"ls"}`)}, {ID: "b", Name: "fs_read", Input: json.RawMessage(`{}`)},
				{ID: "c", Name: "Edit", Input: json.RawMessage(`{"path":"x"}`)}},
				Done: []Done{{ID: "a", Output: "x y", DurationMs: 1500, Reads: true}, {ID: "c", Output: "no such file", IsError: true}}}, nil
		default:
			return &Response{Content: "the end"}, nil
		}
	}
	var ran []string
	f.tool = func(_ context.Context, a *Action) (string, error) { ran = append(ran, a.Call.ID); return "ok", nil }
	if end := run(t, f, t.Context(), Config{}); end.Result != "the end" || end.Exit.Code != 0 {
		t.Fatalf("end: %+v", end)
	}
	if len(ran) != 0 && (len(ran) != 1 || ran[0] != "b") {
		t.Errorf("ran %v; want at most b", ran)
	}
	for _, id := range f.intents {
		if id != "b" {
			t.Errorf("an intent for %s, which has run already", id)
		}
	}
	c := f.steps[0].ToolCalls
	if len(c) != 3 || c[0].Result != "x y" || c[0].Duration.Milliseconds() != 1500 || c[0].Path != "own:Bash" || c[2].Error != "no such file" {
		t.Errorf("on record: %+v", c)
	}
}

func TestWhatHasRunElsewhereIsAnsweredThoughThePauseHolds(t *testing.T) {
	f := newFake(t)
	ctx, cancel := context.WithCancelCause(t.Context())
	f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
		cancel(errStop)
		return &Response{ToolCalls: []rnixctx.ToolCall{{ID: "a", Name: "Bash", Input: json.RawMessage(`{}`)}}, Done: []Done{{ID: "a", Output: "x"}}}, nil
	}
	if end := run(t, f, ctx, Config{}); !errors.Is(end.Cause, errStop) {
		t.Fatalf("end: %+v", end)
	}
	if len(f.steps) != 1 || f.steps[0].ToolCalls[0].Result != "x" {
		t.Errorf("the step is not closed: %+v", f.steps)
	}
}

func TestWhatHasRunElsewhereIsOnRecordThoughItUsedUpTheBudget(t *testing.T) {
	f := newFake(t)
	f.model = func(context.Context, int, []byte) (*Response, error) {
		return &Response{ToolCalls: []rnixctx.ToolCall{{ID: "a", Name: "Bash", Input: json.RawMessage(`{}`)}}, StopReason: stopRan,
			Usage: Usage{Input: 90, Output: 20}, Done: []Done{{ID: "a", Output: "x y"}}}, nil
	}
	f.limit = 100
	end := run(t, f, t.Context(), Config{})
	if end.Exit.Code != types.ExitBudget || f.asked != 1 {
		t.Fatalf("end: %+v after %d questions", end, f.asked)
	}
	if len(f.steps) != 1 || f.steps[0].ToolCalls[0].Result != "x y" {
		t.Errorf("on record: %+v", f.steps)
	}
}

func TestWhatHasRunElsewhereIsNotRunWhenItsEndIsLost(t *testing.T) {
	f := newFake(t)
	f.model = func(context.Context, int, []byte) (*Response, error) { return &Response{Content: "the end"}, nil }
	said := rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: "a", Name: "read", Input: json.RawMessage(`{}`)}, {ID: "b", Name: "Bash", Input: json.RawMessage(`{}`)}}}
	if err := f.Append(said); err != nil {
		t.Fatal(err)
	}
	f.tool = func(_ context.Context, a *Action) (string, error) { t.Errorf("%s is run", a.Call.Name); return "", nil }
	open := &Open{Said: said, Open: recovery.Open{Answer: step.Answer{Step: 1, StopReason: stopRan}, Calls: []recovery.Call{{ID: "a", Name: "read"}, {ID: "b", Name: "Bash"}}}}
	if end := run(t, f, t.Context(), Config{Open: open}); end.Result != "the end" {
		t.Fatalf("end: %+v", end)
	}
	for _, c := range f.steps[0].ToolCalls {
		if c.Error != "" || c.Result == "" {
			t.Errorf("on record: %+v", c)
		}
	}
}
