package loop

import (
	"context"
	"encoding/json"
	"testing"

	rnixctx "rnix/context"
	"rnix/types"
)

// A child that was suspended while another beside it worked on, and that has ended since, does not have
// its parent suspended: nobody would wake it.
func TestACallIsAskedAgainWhenOthersBesideItHaveEnded(t *testing.T) {
	f := newFake(t)
	f.model = func(_ context.Context, n int, _ []byte) (*Response, error) {
		if n > 1 {
			return &Response{Content: "done"}, nil
		}
		return &Response{ToolCalls: []rnixctx.ToolCall{
			{ID: "a", Name: "spawn", Input: json.RawMessage(`{"intent":"a"}`)}, {ID: "b", Name: "spawn", Input: json.RawMessage(`{"intent":"b"}`)}}}, nil
	}
	suspended := make(chan struct{})
	f.tool = func(_ context.Context, a *Action) (string, error) {
		switch {
		case a.Call.ID == "b":
			<-suspended
			return "b is done", nil
		case a.Earlier == nil:
			close(suspended)
			return "", &Waiting{For: types.SuspendFor(types.SuspendChild, "child a")}
		}
		return "a is done", nil
	}
	l, err := New(Config{Budget: fakeBudget{f}, Compactor: f, Tools: testTools, Meta: map[string]Kind{"spawn": Spawn}}, Progress{}, f)
	if err != nil {
		t.Fatal(err)
	}
	if end := l.Run(t.Context()); end.Wait.Waits() || end.Result != "done" {
		t.Errorf("%+v", end)
	}
	f.legal()
}
