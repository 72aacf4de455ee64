package loop

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/vfs"
)

// A call whose outcome nobody knows is not said to be of an unknown tool, and so not to have run, when
// its tool is not there any more.
func TestACallInDoubtStaysSoWithoutItsTool(t *testing.T) {
	f := newFake(t)
	said := rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: "a", Name: "gone", Input: json.RawMessage(`{}`)}}}
	if err := f.Said(said, nil); err != nil {
		t.Fatal(err)
	}
	f.model = func(context.Context, int, []byte) (*Response, error) { return &Response{Content: "done"}, nil }
	open := &Open{Said: said, Open: recovery.Open{Answer: step.Answer{Step: 1},
		Calls: []recovery.Call{{ID: "a", Name: "gone", Begun: true, Intent: &step.Intent{CallID: "a", Effect: string(vfs.EffectExternal)}}}}}
	l, err := New(Config{Budget: fakeBudget{f}, Compactor: f, Tools: testTools, Open: open}, Progress{}, f)
	if err != nil {
		t.Fatal(err)
	}
	if end := l.Run(t.Context()); end.Result != "done" {
		t.Errorf("%+v", end)
	}
	p, err := f.Prompt()
	if err != nil {
		t.Fatal(err)
	}
	if got := p.Messages[2].Content; !strings.Contains(got, "outcome is unknown") {
		t.Errorf("the model is told %q", got)
	}
}

// The time between two runs is no part of a step.
func TestReopenedStepTakesTheTimeThatWasWorked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := newFake(t)
		said := rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: "a", Name: "gone", Input: json.RawMessage(`{}`)}}}
		if err := f.Said(said, nil); err != nil {
			t.Fatal(err)
		}
		f.model = func(context.Context, int, []byte) (*Response, error) {
			<-time.After(3 * time.Second)
			return &Response{Content: "done"}, nil
		}
		began := time.Now().Add(-10 * time.Minute)
		open := &Open{Said: said, Open: recovery.Open{Answer: step.Answer{Step: 1, Started: began, ModelTime: 2 * time.Second},
			Calls: []recovery.Call{{ID: "a", Name: "gone", Begun: true, Intent: &step.Intent{CallID: "a", Effect: string(vfs.EffectExternal)}}}}}
		l, err := New(Config{Budget: fakeBudget{f}, Compactor: f, Tools: testTools, Open: open}, Progress{}, f)
		if err != nil {
			t.Fatal(err)
		}
		if end := l.Run(t.Context()); end.Result != "done" {
			t.Errorf("%+v", end)
		}
		if len(f.steps) != 2 || f.steps[0].Duration != 2*time.Second || !f.steps[0].Timestamp.Equal(began) || f.steps[1].Duration != 3*time.Second {
			t.Errorf("%+v", f.steps)
		}
	})
}
