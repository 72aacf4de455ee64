package agent

import (
	"encoding/json"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"rnix/types"
)

func TestEveryEventComesBackAsItWasWritten(t *testing.T) {
	for _, e := range []Event{
		InitEvent{SessionID: "s", Model: "m", CWD: "/w", Tools: []string{"a"}, MCPServers: map[string]string{"rnix": "connected"}},
		SystemEvent{Subtype: "api_retry", Message: "again"},
		AssistantTextEvent{Text: "a\nb <é>", Delta: true},
		ToolUseEvent{ToolUseID: "1", ToolName: "Bash", Input: json.RawMessage(`{"command":"ls"}`), Category: "shell"},
		ToolResultEvent{ToolUseID: "1", ToolName: "Bash", Content: "x", IsError: true},
		ToolProgressEvent{ToolUseID: "1", ToolName: "Bash", Elapsed: time.Second},
		UsageEvent{Model: "m", Input: 1, Output: 2, CacheRead: 3, CacheWrite: 4, CostUSD: 0.5, Total: true},
		ResultEvent{Success: true, Message: "done", Turns: 2, Usage: &UsageEvent{Input: 1, Output: 2}},
		ErrorEvent{Code: "spawn_no_result", Message: "it crashed"},
		ResultEvent{},
	} {
		line, err := MarshalEvent(e)
		if err != nil {
			t.Fatal(err)
		}
		back, err := UnmarshalEvent(line)
		if err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		if d := cmp.Diff(e, back); d != "" {
			t.Errorf("%s comes back changed:\n%s", line, d)
		}
		if want := KindOf(e) == EventResult || KindOf(e) == EventError; Terminal(back) != want {
			t.Errorf("%s: Terminal = %v", line, !want)
		}
	}
}

func TestAnEventOfANewerProgramIsToldFromABrokenOne(t *testing.T) {
	for line, code := range map[string]types.ErrCode{
		`{"kind":"from_the_future"}`:      types.ErrNotFound,
		`{"kind":"result","success":"x"}`: types.ErrInvalid,
		`{"kind":`:                        types.ErrInvalid,
		`[]`:                              types.ErrInvalid,
		``:                                types.ErrInvalid,
	} {
		if e, err := UnmarshalEvent([]byte(line)); types.CodeOf(err) != code || e != nil {
			t.Errorf("%q: %v, %v; want %s", line, e, err, code)
		}
	}
	if _, err := MarshalEvent(nil); types.CodeOf(err) != types.ErrInvalid {
		t.Errorf("no event: %v", err)
	}
}
