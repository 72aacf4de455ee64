package loop

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/step"
)

func reads(names ...string) []rnixctx.ToolCall {
	out := make([]rnixctx.ToolCall, len(names))
	for i, n := range names {
		out[i] = rnixctx.ToolCall{ID: n, Name: "read", Input: json.RawMessage(`{"path":"` + n + `"}`)}
	}
	return out
}

// asking has the model make calls in one answer, and asks about some of them.
func asking(t *testing.T, names []string, about ...string) (f *fake, ran *[]string) {
	f, ran = newFake(t), new([]string)
	f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
		if n == 1 {
			return &Response{ToolCalls: reads(names...)}, nil
		}
		return &Response{Content: "done"}, nil
	}
	f.tool = func(_ context.Context, a *Action) (string, error) {
		f.mu.Lock()
		*ran = append(*ran, a.Call.ID+" "+a.Field("path"))
		f.mu.Unlock()
		return "ok", nil
	}
	f.permit = func(as []Action) (asked []int) {
		for i := range as {
			if as[i].Reply == nil && slices.Contains(about, as[i].Call.ID) {
				as[i].Ask = &step.Ask{Number: uint64(i + 1), CallID: as[i].Call.ID}
				asked = append(asked, i)
			}
		}
		return asked
	}
	return f, ran
}

func sorted(s []string) []string { s = slices.Clone(s); slices.Sort(s); return s }

func TestNothingRunsBeforeItsAnswer(t *testing.T) {
	for _, names := range [][]string{{"a"}, {"a", "b"}} {
		f, ran := asking(t, names, names...)
		f.replied = func(_ context.Context, as []Action, asked []int) (int, error) {
			if len(*ran) != len(names)-len(asked) || len(f.intents) != len(*ran) {
				t.Errorf("before the answer ran %q, and was begun %q", *ran, f.intents)
			}
			as[asked[0]].Answer(&step.Answered{Allow: true})
			return 0, nil
		}
		if end := run(t, f, t.Context(), Config{}); end.Result != "done" || len(*ran) != len(names) {
			t.Errorf("%+v, ran %q", end, *ran)
		}
	}
}

func TestNeighboursRunWhileOneIsAskedAbout(t *testing.T) {
	f, ran := asking(t, []string{"a", "b", "c", "d"}, "b", "c")
	f.replied = func(_ context.Context, as []Action, asked []int) (int, error) {
		if len(asked) == 2 && !slices.Equal(sorted(*ran), []string{"a a", "d d"}) {
			t.Errorf("before an answer ran %q", *ran)
		}
		at := len(asked) - 1 // the last one first
		as[asked[at]].Answer(&step.Answered{Allow: true})
		return at, nil
	}
	end := run(t, f, t.Context(), Config{})
	if end.Result != "done" || !slices.Equal((*ran)[2:], []string{"c c", "b b"}) {
		t.Errorf("%+v, ran %q", end, *ran)
	}
	f.legal()
	if !slices.Equal(sorted(f.intents), []string{"a", "b", "c", "d"}) {
		t.Errorf("intents %q", f.intents)
	}
}

func TestAnswersAreTakenOver(t *testing.T) {
	f, ran := asking(t, []string{"a", "b"}, "a", "b")
	f.replied = func(_ context.Context, as []Action, asked []int) (int, error) {
		if as[asked[0]].Call.ID == "a" {
			as[asked[0]].Answer(&step.Answered{Because: "not today"})
		} else {
			as[asked[0]].Answer(&step.Answered{Allow: true, Input: json.RawMessage(`{"path":"other"}`)})
		}
		return 0, nil
	}
	run(t, f, t.Context(), Config{})
	if !slices.Equal(*ran, []string{"b other"}) {
		t.Errorf("ran %q", *ran)
	}
	p, err := f.Prompt()
	if err != nil {
		t.Fatal(err)
	}
	said := map[string]string{}
	for _, m := range p.Messages {
		said[m.ToolCallID] = m.Content
	}
	if !strings.Contains(said["a"], "not today") || !strings.Contains(said["b"], `has changed the input of this call to {"path":"other"}`) {
		t.Errorf("the model is told %q", said)
	}
	if c := f.steps[0].ToolCalls[1]; c.Input != `{"path":"other"}` {
		t.Errorf("the record has %q", c.Input)
	}
}

// The time limit of a step does not run while a person is asked.
func TestAskingTakesNoTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, ran := asking(t, []string{"a", "b"}, "a")
		f.replied = func(_ context.Context, as []Action, asked []int) (int, error) {
			<-time.After(24 * time.Hour)
			as[asked[0]].Answer(&step.Answered{Allow: true})
			return 0, nil
		}
		end := run(t, f, t.Context(), Config{StepTimeout: time.Minute})
		if end.Result != "done" || len(*ran) != 2 {
			t.Errorf("%+v, ran %q", end, *ran)
		}
		p, _ := f.Prompt()
		for _, m := range p.Messages {
			if m.IsError {
				t.Errorf("%+v", m)
			}
		}
	})
}

func TestEndWhileAPersonIsAsked(t *testing.T) {
	for _, c := range []struct {
		why      error
		answered int
	}{{errStop, 1}, {errors.New("killed"), 3}} {
		f, ran := asking(t, []string{"a", "b", "c"}, "b", "c")
		ctx, cancel := context.WithCancelCause(t.Context())
		f.replied = func(ctx context.Context, _ []Action, _ []int) (int, error) {
			cancel(c.why)
			return 0, context.Cause(ctx)
		}
		end := run(t, f, ctx, Config{})
		if end.Cause != c.why || !slices.Equal(*ran, []string{"a a"}) || !slices.Equal(f.intents, []string{"a"}) {
			t.Errorf("%v: %+v, ran %q, intents %q", c.why, end, *ran, f.intents)
		}
		p, _ := f.Prompt()
		n := 0
		for _, m := range p.Messages {
			if m.Role == rnixctx.RoleTool {
				n++
			}
		}
		if n != c.answered {
			t.Errorf("%v: %d calls have their answer", c.why, n)
		}
	}
}

// A later run does what a person has answered to an earlier one, and with the input of the answer also what that had begun.
func TestAnswersOfAnEarlierRun(t *testing.T) {
	f, ran := asking(t, nil)
	said := rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: reads("a", "b", "c")}
	if err := f.Said(said, nil); err != nil {
		t.Fatal(err)
	}
	f.model = func(context.Context, int, []byte) (*Response, error) { return &Response{Content: "done"}, nil }
	ask := func(id string) *step.Ask { return &step.Ask{Number: 1, CallID: id} }
	open := &Open{Said: said, Open: recovery.Open{Answer: step.Answer{Step: 1}, Calls: []recovery.Call{
		{ID: "a", Name: "read", Ask: ask("a"), Reply: &step.Answered{Number: 1}},
		{ID: "b", Name: "read", Ask: ask("b"), Reply: &step.Answered{Number: 1, Allow: true, Input: json.RawMessage(`{"path":"other"}`)}, Begun: true, Intent: &step.Intent{CallID: "b", Effect: "none"}},
		{ID: "c", Name: "read", Ask: ask("c")},
	}}}
	numbers := []uint64{}
	f.permit = func(as []Action) (asked []int) {
		for i := range as {
			if as[i].Reply == nil {
				numbers, asked = append(numbers, as[i].Ask.Number), append(asked, i)
			}
		}
		return asked
	}
	f.replied = func(_ context.Context, as []Action, asked []int) (int, error) {
		as[asked[0]].Answer(&step.Answered{Allow: true})
		return 0, nil
	}
	end := run(t, f, t.Context(), Config{Open: open})
	if end.Result != "done" || !slices.Equal(*ran, []string{"b other", "c c"}) || !slices.Equal(numbers, []uint64{1}) {
		t.Errorf("%+v, ran %q, asked again with %v", end, *ran, numbers)
	}
}

// Who is told of a command in a line sees that there is more of it.
func TestMoreLinesOfACommandAreCounted(t *testing.T) {
	for command, want := range map[string]string{"": "", "git x": "", "git x\n": "", "git x\nrm y": " (+1 line)", "\ngit x\n\nrm y\n": " (+2 lines)"} {
		if got := MoreLines(command); got != want {
			t.Errorf("%q: %q, want %q", command, got, want)
		}
	}
}
