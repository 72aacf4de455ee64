package loop

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	rnixctx "rnix/context"
	"rnix/types"
)

func TestAResultIsNotLostForItsForm(t *testing.T) {
	for _, c := range []struct{ input, said, want string }{
		{`{"result":"all done"}`, "beside", "all done"},
		{`{"result":{"files":["a","b"]}}`, "", `{"files":["a","b"]}`},
		{`{"result": 42}`, "", "42"},
		{`{}`, "it is done", "it is done"},
		{`{"result":null}`, "it is done", "it is done"},
		{`{"result":""}`, "it is done", "it is done"},
		{`{}`, "", ""},
	} {
		f := newFake(t)
		answer := calls("complete " + c.input)
		answer.Content = c.said
		f.model = script(answer)
		if end := run(t, f, t.Context(), Config{}); end.Exit.Code != types.ExitOK || end.Result != c.want {
			t.Errorf("%s beside %q: got %+v", c.input, c.said, end)
		}
	}
}

func TestAGivenIdIsKeptWhereOneIsMadeUp(t *testing.T) {
	cs := []rnixctx.ToolCall{{ID: ""}, {ID: "call-1"}, {ID: "call-1"}, {ID: ""}}
	uniqueIDs(cs)
	seen := map[string]bool{}
	for _, c := range cs {
		if c.ID == "" || seen[c.ID] {
			t.Fatalf("got %v", cs)
		}
		seen[c.ID] = true
	}
	if cs[1].ID != "call-1" {
		t.Fatalf("the id that was given is gone: %v", cs)
	}
}

func TestAnAnswerThatWasCutIsNotLostWithTheProcess(t *testing.T) {
	cut := said("half an answer")
	cut.StopReason = "max_tokens"
	for name, c := range map[string]struct {
		cfg    Config
		reason string
	}{
		"steps":  {Config{MaxSteps: 1}, types.ReasonMaxSteps},
		"silent": {Config{}, "the model gave an empty answer twice"},
	} {
		f := newFake(t)
		f.model = script(cut, said(""), said(""))
		if end := run(t, f, t.Context(), c.cfg); end.Result != "half an answer" || end.Exit.Reason != c.reason {
			t.Errorf("%s: got %+v", name, end)
		}
	}
}

func TestAPauseThatCannotBeRecordedIsAStorageError(t *testing.T) {
	f := newFake(t)
	f.wait = func(context.Context) error {
		return types.Errorf(types.ErrStorage, "Commit", "steps.jsonl", "no space left")
	}
	end := run(t, f, t.Context(), Config{})
	if end.Cause != nil || types.CodeOf(end.Exit.Err) != types.ErrStorage || !strings.HasPrefix(end.Exit.Reason, "storage: ") {
		t.Fatalf("got %+v", end)
	}
}

func TestNonsenseCountsDoNotPassABudget(t *testing.T) {
	for _, u := range []Usage{{Input: -5}, {Input: 1 << 62, Output: 1 << 62}} {
		f := newFake(t)
		f.limit = 50
		f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
			r := calls(fmt.Sprintf(`read {"path":"%d"}`, n))
			r.Usage = u
			return r, nil
		}
		if end := run(t, f, t.Context(), Config{}); end.Exit.Code != types.ExitBudget {
			t.Errorf("%+v: got %+v", u, end)
		}
	}
}

// A few words and many tools: the provider counts far more than the words, and that must not be taken
// for a rate at which all words count.
func TestToolsDoNotMakeAShortConversationLookFull(t *testing.T) {
	f := newFake(t)
	specs := []byte(`[` + strings.Repeat(" ", 12000) + `]`)
	f.tool = func(context.Context, *Action) (string, error) { return strings.Repeat("line\n", 6000), nil }
	f.model = func(_ context.Context, n int, req []byte) (*Response, error) {
		if n == 3 {
			if !strings.Contains(string(req), strings.Repeat(`line\n`, 6000)) {
				t.Error("what was read was cut, with half of the window free")
			}
			return said("ok"), nil
		}
		r := calls(`plan {"steps":["read"]}`)
		if n == 2 {
			r = calls(`read {"path":"a"}`)
		}
		r.Usage.Input = len(req) / 4
		return r, nil
	}
	if end := run(t, f, t.Context(), Config{Window: 32000, Specs: json.RawMessage(specs)}); end.Result != "ok" {
		t.Fatalf("%+v", end)
	}
}
