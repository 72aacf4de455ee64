package harness

import (
	"encoding/json"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
)

const (
	opencodeText = `{"type":"text","sessionID":"ses_1","part":{"type":"text","text":"done"}}`
	opencodeStop = `{"type":"step_finish","sessionID":"ses_1","part":{"reason":"stop","tokens":{"input":10,"output":4,"reasoning":2,"cache":{"read":3,"write":1}},"cost":0.25}}`
)

func TestOpencodesLinesAreEvents(t *testing.T) {
	got, l := read(t, "opencode", `{"type":"step_start","sessionID":"ses_1","part":{}}`,
		`{"type":"tool_use","sessionID":"ses_1","part":{"tool":"bash","callID":"c1","state":{"status":"completed","input":{"command":"ls"},"output":"a"}}}`,
		`{"type":"tool_use","sessionID":"ses_1","part":{"tool":"rnix_read","callID":"c2","state":{"status":"error","input":{},"error":"no"}}}`,
		`{"type":"step_finish","sessionID":"ses_1","part":{"reason":"tool-calls","tokens":{"input":1},"cost":0.5}}`,
		`{"type":"step_start","sessionID":"ses_1","part":{}}`, `{"type":"of_tomorrow"}`, opencodeText, opencodeStop)
	want := []agent.Event{
		agent.InitEvent{SessionID: "ses_1"},
		agent.ToolUseEvent{ToolUseID: "c1", ToolName: "bash", Category: "shell", Input: json.RawMessage(`{"command":"ls"}`)},
		agent.ToolResultEvent{ToolUseID: "c1", ToolName: "bash", Content: "a"},
		agent.ToolUseEvent{ToolUseID: "c2", ToolName: "rnix_read", Category: "mcp", Input: json.RawMessage(`{}`)},
		agent.ToolResultEvent{ToolUseID: "c2", ToolName: "rnix_read", Content: "no", IsError: true},
		agent.UsageEvent{Input: 1, CostUSD: 0.5},
		agent.AssistantTextEvent{Text: "done"},
		agent.UsageEvent{Input: 10, Output: 6, CacheRead: 3, CacheWrite: 1, CostUSD: 0.25},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	end := agent.ResultEvent{Success: true, Message: "done", Turns: 2, Usage: &agent.UsageEvent{Input: 11, Output: 6, CacheRead: 3, CacheWrite: 1, CostUSD: 0.75, Total: true}}
	if d := cmp.Diff(agent.Event(end), l.End(Exit{})); d != "" {
		t.Error(d)
	}
}

func TestTheEndOfOpencodeIsASuccessOnlyIfAllIsWell(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		exit  Exit
		why   string
	}{
		"nothing":         {nil, Exit{}, WhyNoResult},
		"between steps":   {[]string{opencodeText, `{"type":"step_finish","part":{"reason":"tool-calls"}}`}, Exit{}, WhyNoResult},
		"a bad exit":      {[]string{opencodeText, opencodeStop}, Exit{Code: 1}, WhyNoResult},
		"a crash":         {[]string{opencodeText}, Exit{Code: 137, Signal: 9}, WhyNoResult},
		"no such session": {nil, Exit{Code: 1, Stderr: "\x1b[91m\x1b[1mError: \x1b[0mSession not found"}, WhyNoSession},
		"a wrong key":     {[]string{`{"type":"error","sessionID":"s","error":{"name":"APIError","data":{"message":"no","statusCode":401}}}`}, Exit{Code: 1}, WhyAuth},
		"aborted":         {[]string{`{"type":"error","error":{"name":"MessageAbortedError","data":{}}}`}, Exit{}, WhyInterrupted},
	} {
		_, l := read(t, "opencode", c.lines...)
		switch e := l.End(c.exit).(type) {
		case agent.ErrorEvent:
			if e.Code != c.why {
				t.Errorf("%s: %+v", name, e)
			}
		case agent.ResultEvent:
			if e.Success || e.Subtype != c.why {
				t.Errorf("%s: %+v", name, e)
			}
		}
	}
}

func FuzzOpencodeLines(f *testing.F) {
	f.Add(opencodeText, opencodeStop)
	f.Add(`{"type":"tool_use","part":{"callID":"a","state":{"input":[],"output":{}}}}`, `{"type":"error","error":"x"}`)
	f.Add(`{"type":"step_finish","part":{"tokens":{"input":-5,"output":1e400},"cost":"x"}}`, "\x1b[")
	f.Fuzz(func(t *testing.T, a, b string) {
		l := opencode{}.Lines(agent.UsageEvent{})
		var events []agent.Event
		for _, x := range []string{a, b, a} {
			events = append(events, l.Line([]byte(x))...)
		}
		end := l.End(Exit{Stderr: b})
		if end == nil || !agent.Terminal(end) {
			t.Fatalf("%+v", end)
		}
		if r, ok := end.(agent.ResultEvent); ok {
			events, end = append(events, r), nil
		}
		wellFormed(t, events, end)
	})
}
