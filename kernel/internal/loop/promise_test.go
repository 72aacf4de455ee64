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

// Each action alone, and each before and behind each other one: the next request is legal (fake checks
// that), and each call has one answer right behind the message that made it.
func TestEveryActionLeavesALegalOrder(t *testing.T) {
	actions := []string{`read {}`, `shell {}`, `spawn {"intent":"x"}`, `plan {"steps":["a"]}`, `replan {"reason":"r"}`, `specialize {"skill":"s"}`, `nosuch {}`, `complete {"result":"r"}`}
	meta := map[string]Kind{"complete": Complete, "plan": Plan, "spawn": Spawn, "replan": Replan, "specialize": Specialize}
	for _, first := range actions {
		for _, second := range append(actions, "") {
			f := newFake(t)
			f.tool = func(_ context.Context, a *Action) (string, error) {
				if a.Kind == Spawn {
					return "", types.Errorf(types.ErrExhausted, "Spawn", "", "too many") // so that complete does not count
				}
				return "ok", nil
			}
			answer := calls(first)
			if second != "" {
				answer = calls(first, second)
			}
			f.model = script(answer, said("end"))
			l, err := New(Config{Budget: fakeBudget{f}, Compactor: f, Tools: testTools, Meta: meta}, Progress{}, f)
			if err != nil {
				t.Fatal(err)
			}
			l.Run(t.Context())
			f.legal()
			p, _ := f.Prompt()
			for i, c := range answer.ToolCalls {
				if m := p.Messages[2+i]; m.Role != rnixctx.RoleTool || m.ToolCallID != c.ID {
					t.Errorf("%s, %s: message %d is %+v", first, second, 2+i, m)
				}
			}
		}
	}
}

func TestPromptIsShortenedUntilItFitsOrNothingIsLeft(t *testing.T) {
	for fits, want := range map[int]string{20_000: "ok", 3_000: "ok", 10: ""} {
		f := newFake(t)
		for i := range 20 {
			id := fmt.Sprint(i)
			_ = f.mgr.Append(f.cid, rnixctx.Message{Role: rnixctx.RoleAssistant, ToolCalls: []rnixctx.ToolCall{{ID: id, Name: "read", Input: json.RawMessage("{}")}}},
				rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: id, Content: strings.Repeat("text ", 2_000)})
		}
		f.model = func(_ context.Context, _ int, req []byte) (*Response, error) {
			if len(req) > fits {
				return nil, types.Errorf(types.ErrInvalid, "Write", "/dev/llm/x", "prompt is too long: %d bytes", len(req))
			}
			return said("ok"), nil
		}
		end := run(t, f, t.Context(), Config{})
		if end.Result != want || want == "" && types.CodeOf(end.Exit.Err) != types.ErrInvalid || f.asked > maxShrink+1 {
			t.Errorf("a model that takes %d bytes: %+v after %d requests", fits, end, f.asked)
		}
	}
}
