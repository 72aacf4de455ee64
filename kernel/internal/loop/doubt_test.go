package loop

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

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
	l, err := New(Config{Tools: testTools, Open: open}, f)
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
