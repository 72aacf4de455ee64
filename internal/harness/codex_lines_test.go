package harness

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/types"
)

const (
	codexInit = `{"type":"thread.started","thread_id":"t-1"}`
	codexDone = `{"type":"turn.completed","usage":{"input_tokens":100,"cached_input_tokens":30,"cache_write_input_tokens":10,"output_tokens":7}}`
)

func TestCodexLinesAreEvents(t *testing.T) {
	got, l := read(t, "codex", codexInit, `{"type":"turn.started"}`,
		`{"type":"item.completed","item":{"id":"item_0","type":"error","message":"an odd model"}}`,
		`{"type":"item.completed","item":{"id":"item_1","type":"agent_message","text":"look"}}`,
		`{"type":"item.started","item":{"id":"item_2","type":"command_execution","command":"ls","exit_code":null,"status":"in_progress"}}`,
		`{"type":"item.completed","item":{"id":"item_2","type":"command_execution","command":"ls","aggregated_output":"a\n","exit_code":2,"status":"failed"}}`,
		`{"type":"item.started","item":{"id":"item_3","type":"mcp_tool_call","server":"rnix","tool":"read","arguments":{"path":"x"},"result":null}}`,
		`{"type":"item.completed","item":{"id":"item_3","type":"mcp_tool_call","server":"rnix","tool":"read","result":{"content":[{"type":"text","text":"hi"}]},"error":null,"status":"completed"}}`,
		`{"type":"item.completed","item":{"id":"item_4","type":"file_change","changes":[{"path":"/w/a","kind":"add"}],"status":"completed"}}`,
		`{"type":"item.completed","item":{"id":"item_5","type":"of_tomorrow"}}`, `{"type":"item.completed"}`, `{"type":"new.line"}`,
		`{"type":"error","message":"Reconnecting... 2/5"}`,
		`{"type":"item.completed","item":{"id":"item_6","type":"agent_message","text":"done"}}`, codexDone)
	run := l.(*codexLines).run + "-"
	want := []agent.Event{
		agent.InitEvent{SessionID: "t-1"},
		agent.SystemEvent{Subtype: "notice", Message: "an odd model"},
		agent.AssistantTextEvent{Text: "look"},
		agent.ToolUseEvent{ToolUseID: run + "item_2", ToolName: "shell", Category: "shell", Input: json.RawMessage(`{"command":"ls"}`)},
		agent.ToolResultEvent{ToolUseID: run + "item_2", ToolName: "shell", Content: "a\n", IsError: true},
		agent.ToolUseEvent{ToolUseID: run + "item_3", ToolName: "mcp__rnix__read", Category: "mcp", Input: json.RawMessage(`{"path":"x"}`)},
		agent.ToolResultEvent{ToolUseID: run + "item_3", ToolName: "mcp__rnix__read", Content: "hi"},
		agent.ToolUseEvent{ToolUseID: run + "item_4", ToolName: "apply_patch", Category: "file", Input: json.RawMessage(`{"changes":[{"path":"/w/a","kind":"add"}]}`)},
		agent.ToolResultEvent{ToolUseID: run + "item_4", ToolName: "apply_patch", Content: `[{"path":"/w/a","kind":"add"}]`},
		agent.SystemEvent{Subtype: "error", Message: "Reconnecting... 2/5"},
		agent.AssistantTextEvent{Text: "done"},
		agent.ResultEvent{Success: true, Message: "done", Usage: &agent.UsageEvent{Input: 60, Output: 7, CacheRead: 30, CacheWrite: 10, Total: true}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if e := l.End(Exit{}); e != nil {
		t.Errorf("%+v", e)
	}
	if other := newCodexLines(agent.UsageEvent{}); other.run == l.(*codexLines).run {
		t.Error("two runs give their tools the same ids")
	}
}

func TestCodexTotalsAreThoseOfThisRun(t *testing.T) {
	for before, want := range map[agent.UsageEvent]agent.UsageEvent{
		{}: {Input: 60, Output: 7, CacheRead: 30, CacheWrite: 10, Total: true},
		{Input: 50, Output: 5, CacheRead: 30, Total: true}: {Input: 10, Output: 2, CacheWrite: 10, Total: true},
		{Input: 61, Output: 5}:                             {Input: 60, Output: 7, CacheRead: 30, CacheWrite: 10, Total: true}, // it does not count on
	} {
		l := newCodexLines(before)
		e := l.Line([]byte(codexDone))[0].(agent.ResultEvent)
		if d := cmp.Diff(want, *e.Usage); d != "" {
			t.Errorf("%+v: %s", before, d)
		}
	}
}

func TestCodexFailuresSayWhy(t *testing.T) {
	for text, want := range map[string]types.ErrCode{
		"unexpected status 401 Unauthorized: wrong":                    types.ErrAuth,
		"exceeded retry limit, last status: 429 Too Many Requests":     types.ErrRateLimited,
		"You've hit your usage limit. Try again later":                 types.ErrRateLimited,
		"Your input exceeds the context window of this model":          types.ErrInvalid,
		"stream disconnected before completion: error sending request": types.ErrUnavailable,
		"unexpected status 503 Service Unavailable":                    types.ErrUnavailable,
		"something odd": types.ErrDriver,
	} {
		text, err := json.Marshal(text)
		if err != nil {
			t.Fatal(err)
		}
		got, l := read(t, "codex", codexInit, `{"type":"turn.failed","error":{"message":`+string(text)+`}}`)
		e, ok := got[1].(agent.ResultEvent)
		if !ok || e.Success || CodeOf(e) != want || len(e.Errors) != 1 || l.End(Exit{Code: 1}) != nil {
			t.Errorf("%s: %+v", text, got)
		}
	}
	_, l := read(t, "codex", codexInit)
	e, _ := l.End(Exit{Code: 1, Stderr: "Reading prompt from stdin...\n2026-01-01T00:00:00.1Z ERROR core: no\nError: thread/resume failed: no rollout found for thread id x\n\nStack backtrace:\n 0: <unknown>"}).(agent.ErrorEvent)
	if e.Code != WhyNoSession || strings.Contains(e.Message, "unknown>") || strings.Contains(e.Message, "ERROR core") {
		t.Errorf("%+v", e)
	}
}

func FuzzCodexLines(f *testing.F) {
	f.Add(codexInit, codexDone)
	f.Add(`{"type":"item.started","item":{"id":"a","type":"mcp_tool_call","arguments":7}}`, `{"type":"item.completed","item":{"id":"a","type":"file_change","changes":"x"}}`)
	f.Add(`{"type":"turn.failed"}`, `{"type":"turn.completed","usage":{"input_tokens":-1e300,"output_tokens":"x"}}`)
	f.Fuzz(func(t *testing.T, a, b string) {
		l := codex{}.Lines(agent.UsageEvent{Input: 5})
		var events []agent.Event
		for _, x := range []string{a, b, a, b} {
			events = append(events, l.Line([]byte(x))...)
		}
		wellFormed(t, events, l.End(Exit{Code: 1}))
	})
}
