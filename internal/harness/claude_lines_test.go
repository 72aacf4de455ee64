package harness

import (
	"encoding/json"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/types"
)

// read is what lines mean, all of them in one run.
func read(t *testing.T, name string, lines ...string) (out []agent.Event, l Lines) {
	t.Helper()
	cli, err := Lookup(name)
	if err != nil {
		t.Fatal(err)
	}
	l = cli.Lines(agent.UsageEvent{})
	for _, x := range lines {
		out = append(out, l.Line([]byte(x))...)
	}
	return out, l
}

const (
	claudeInit = `{"type":"system","subtype":"init","session_id":"s-1","model":"m","cwd":"/w","tools":["Bash"],"mcp_servers":[{"name":"rnix","status":"connected","source":"x"}]}`
	claudeGood = `{"duration_ms":3,"subtype":"success","is_error":false,"result":"done","num_turns":2,"total_cost_usd":0.5,"usage":{"input_tokens":10,"output_tokens":4,"cache_read_input_tokens":3},"type":"result"}`
)

func TestClaudesLinesAreEvents(t *testing.T) {
	got, l := read(t, "claude", claudeInit,
		`{"type":"system","subtype":"status","status":"requesting"}`,
		`{"type":"system","subtype":"api_retry","attempt":1,"max_retries":2,"error":"overloaded"}`,
		`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"text","text":"look"},{"type":"tool_use","id":"t1","name":"Bash","input":{"command":"ls"}},{"type":"tool_use","id":"t2","name":"mcp__rnix__read","input":[]}],"usage":{"input_tokens":1,"output_tokens":1}}}`,
		`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"thinking","thinking":"x"}],"usage":{"input_tokens":7,"output_tokens":9}}}`,
		`{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t1","content":"a\nb"},{"type":"tool_result","tool_use_id":"t2","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image"}]}]}}`,
		`{"type":"something_new","x":1}`,
		`{"type":"assistant","message":{"id":"b","model":"m","content":[{"type":"text","text":"done"}]}}`,
		`{"type":"rate_limit_event","rate_limit_info":{"status":"rejected","rateLimitType":"five_hour"}}`,
		claudeGood)
	want := []agent.Event{
		agent.InitEvent{SessionID: "s-1", Model: "m", CWD: "/w", Tools: []string{"Bash"}, MCPServers: map[string]string{"rnix": "connected"}},
		agent.SystemEvent{Subtype: "api_retry", Message: "overloaded (attempt 1 of 2)"},
		agent.AssistantTextEvent{Text: "look"},
		agent.ToolUseEvent{ToolUseID: "t1", ToolName: "Bash", Input: json.RawMessage(`{"command":"ls"}`), Category: "shell"},
		agent.ToolUseEvent{ToolUseID: "t2", ToolName: "mcp__rnix__read", Input: json.RawMessage(`{}`), Category: "mcp"},
		agent.ToolResultEvent{ToolUseID: "t1", ToolName: "Bash", Content: "a\nb"},
		agent.ToolResultEvent{ToolUseID: "t2", ToolName: "mcp__rnix__read", Content: "no\n[image]", IsError: true},
		agent.UsageEvent{Model: "m", Input: 7, Output: 9}, // one message, counted once, with the last numbers
		agent.AssistantTextEvent{Text: "done"},
		agent.SystemEvent{Subtype: "rate_limit", Message: "rejected five_hour"},
		agent.UsageEvent{Model: "m"},
		agent.ResultEvent{Success: true, Message: "done", Turns: 2, Usage: &agent.UsageEvent{Input: 10, Output: 4, CacheRead: 3, CostUSD: 0.5, Total: true}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if e := l.End(Exit{}); e != nil {
		t.Errorf("a good end: %+v", e)
	}
}

func TestClaudesStreamedUsageIsThatOfTheAnswer(t *testing.T) {
	got, _ := read(t, "claude",
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"a","model":"m","usage":{"input_tokens":5,"output_tokens":1,"cache_read_input_tokens":2}}},"api_message_id":"a"}`,
		`{"type":"stream_event","event":{"type":"message_start","message":{"id":"sub","model":"n","usage":{"input_tokens":50}}},"parent_tool_use_id":"t1"}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"he"}}}`,
		`{"type":"stream_event","event":{"type":"content_block_delta","delta":{"type":"text_delta","text":"of another"}},"parent_tool_use_id":"t1"}`,
		`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"text","text":"hello"}],"usage":{"input_tokens":5,"output_tokens":1}}}`,
		`{"type":"stream_event","event":{"type":"message_delta","usage":{"output_tokens":30}}}`,
		`{"type":"stream_event","event":{"type":"message_stop"}}`,
		`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"text","text":"late"}],"usage":{"input_tokens":5,"output_tokens":1}}}`,
		`{"type":"result","subtype":"error_during_execution","terminal_reason":"aborted_streaming","is_error":true,"usage":{"input_tokens":0,"output_tokens":0}}`)
	want := []agent.Event{
		agent.AssistantTextEvent{Text: "he", Delta: true},
		agent.AssistantTextEvent{Text: "hello"},
		agent.UsageEvent{Model: "m", Input: 5, Output: 30, CacheRead: 2},
		agent.AssistantTextEvent{Text: "late"},
		agent.UsageEvent{Model: "n", Input: 50}, // it was cut off
		agent.ResultEvent{Subtype: WhyInterrupted, Usage: &agent.UsageEvent{Total: true}},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
}

func TestClaudesCostIsThatOfThisRun(t *testing.T) {
	turn := func(total, since string) string {
		return `{"type":"result","subtype":"success","is_error":false,"result":"x","total_cost_usd":` + total + `,"model_usage_since_last_result":{"m":{"inputTokens":10,"outputTokens":1,"costUSD":` + since + `},"n":{"inputTokens":1,"cacheReadInputTokens":2,"cacheCreationInputTokens":3,"costUSD":0.25}}}`
	}
	got, _ := read(t, "claude", turn("7.75", "0.5"), turn("8.75", "0.75")) // 7 dollars are from before
	first, second := got[0].(agent.ResultEvent).Usage, got[1].(agent.ResultEvent).Usage
	if d := cmp.Diff([]agent.UsageEvent{
		{Input: 11, Output: 1, CacheRead: 2, CacheWrite: 3, CostUSD: 0.75, Total: true},
		{Input: 22, Output: 2, CacheRead: 4, CacheWrite: 6, CostUSD: 1.75, Total: true},
	}, []agent.UsageEvent{*first, *second}); d != "" {
		t.Error(d)
	}
	// A version that does not tell what a turn has used.
	got, _ = read(t, "claude", claudeGood, strings.Replace(claudeGood, `usd":0.5`, `usd":0.75`, 1))
	if u := got[1].(agent.ResultEvent).Usage; u.CostUSD != 0.75 || u.Input != 20 {
		t.Errorf("%+v", u)
	}
}

func TestClaudesFailuresSayWhy(t *testing.T) {
	for line, want := range map[string]struct {
		why  string
		code types.ErrCode
	}{
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":401,"result":"Invalid key"}`:                        {WhyAuth, types.ErrAuth},
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":429,"result":"slow"}`:                               {WhyRateLimited, types.ErrRateLimited},
		`{"type":"result","subtype":"success","is_error":true,"api_error_status":null,"result":"Connection refused (ECONNREFUSED)"}`: {WhyUnavailable, types.ErrUnavailable},
		`{"type":"result","subtype":"error_max_turns","is_error":true,"errors":["too many"]}`:                                        {WhyTurns, types.ErrExhausted},
		`{"type":"result","subtype":"error_max_budget_usd","is_error":true}`:                                                         {WhyBudget, types.ErrExhausted},
		`{"type":"result","subtype":"error_during_execution","is_error":true,"errors":["No conversation found with session ID: x"]}`: {WhyNoSession, types.ErrNotFound},
		`{"type":"result","subtype":"error_of_tomorrow","is_error":false,"result":"x"}`:                                              {WhyFailed, types.ErrDriver},
		`{"type":"result","result":"x"}`:                                            {WhyFailed, types.ErrDriver},
		`{"type":"result","subtype":"success","is_error":"what"}`:                   {WhyFailed, types.ErrDriver},
		`{"type":"result","subtype":"success","is_error":false,"result":{"a":"b"}}`: {WhyFailed, types.ErrDriver},
	} {
		got, l := read(t, "claude", claudeInit, line)
		e, ok := got[len(got)-1].(agent.ResultEvent)
		if !ok || e.Success || e.Subtype != want.why || CodeOf(e) != want.code {
			t.Errorf("%s: %+v", line, got[1:])
		}
		if end := l.End(Exit{Code: 1}); end != nil {
			t.Errorf("%s: the result stands, but %+v", line, end)
		}
	}
}

func TestTheEndOfClaudeIsAskedForWhenItsLinesSayNothing(t *testing.T) {
	for name, c := range map[string]struct {
		lines []string
		exit  Exit
		code  string
		text  string
	}{
		"crash":                 {[]string{claudeInit}, Exit{Code: 137, Signal: 9}, WhyNoResult, "signal 9"},
		"interrupted":           {[]string{claudeInit}, Exit{}, WhyNoResult, "without a result"},
		"usage":                 {nil, Exit{Code: 1, Stderr: "unknown option"}, WhyNoResult, "unknown option"},
		"text":                  {[]string{"Something is wrong"}, Exit{Code: 1}, WhyNoResult, "Something is wrong"},
		"nothing to go on with": {nil, Exit{Code: 1, Stderr: "No conversation found with session ID: x"}, WhyNoSession, "exit code 1"},
		"after its result":      {[]string{claudeGood}, Exit{Code: 1, Stderr: "boom"}, WhyBadExit, "boom"},
		"in its second turn":    {[]string{claudeInit, claudeGood, claudeInit}, Exit{Code: 1}, WhyNoResult, "exit code 1"},
		"stopped":               {[]string{claudeGood}, Exit{Code: 143, Stopped: true}, "", ""},
	} {
		_, l := read(t, "claude", c.lines...)
		e, _ := l.End(c.exit).(agent.ErrorEvent)
		if e.Code != c.code || !strings.Contains(e.Message, c.text) {
			t.Errorf("%s: %+v", name, e)
		}
	}
}

func TestALineThatWasCutIsUnreadableAndEndsItsTool(t *testing.T) {
	got, _ := read(t, "claude",
		`{"type":"assistant","message":{"id":"a","content":[{"type":"tool_use","id":"t1","name":"Read","input":{}}]}}`,
		`{"type":"user","message":{"content":[{"tool_use_id":"t1","type":"tool_result","content":"`+strings.Repeat("x", 9000),
		`{"type":"assistant","message":{"content":[{"type":"text","te`,
		``, "\xff\xfe")
	if r, ok := got[1].(agent.ToolResultEvent); !ok || r.ToolUseID != "t1" || r.ToolName != "Read" {
		t.Errorf("%+v", got)
	}
	for _, e := range got[2:] {
		if s, ok := e.(agent.SystemEvent); !ok || s.Subtype != "unreadable" || len(s.Message) > 400 {
			t.Errorf("%+v", e)
		}
	}
	if len(got) != 5 {
		t.Errorf("%d events", len(got))
	}
}

// wellFormed fails the test if events break what Lines promises.
func wellFormed(t *testing.T, events []agent.Event, end agent.Event) {
	t.Helper()
	uses := map[string]int{}
	for _, e := range events {
		line, err := agent.MarshalEvent(e)
		if err != nil {
			t.Fatalf("%+v: %v", e, err)
		}
		if _, err := agent.UnmarshalEvent(line); err != nil {
			t.Fatalf("%s: %v", line, err)
		}
		switch e := e.(type) {
		case agent.ToolUseEvent:
			if uses[e.ToolUseID]++; e.ToolUseID == "" || !json.Valid(e.Input) {
				t.Errorf("%+v", e)
			}
		case agent.UsageEvent:
			if e.Input < 0 || e.Output < 0 || e.CacheRead < 0 || e.CacheWrite < 0 || e.CostUSD < 0 || e.Total {
				t.Errorf("%+v", e)
			}
		case agent.ResultEvent:
			if e.Usage == nil || e.Usage.Input < 0 || e.Usage.CostUSD < 0 || math.IsInf(e.Usage.CostUSD, 0) || !e.Usage.Total || !e.Success && e.Subtype == "" || (CodeOf(e) == "") != e.Success {
				t.Errorf("%+v %+v", e, e.Usage)
			}
		case agent.ErrorEvent:
			t.Errorf("a line ended the session: %+v", e)
		}
	}
	if n := len(events); n == 0 || !agent.Terminal(events[n-1]) {
		if end == nil {
			return
		}
	}
	if e, ok := end.(agent.ErrorEvent); end != nil && (!ok || e.Code == "" || e.Message == "") {
		t.Errorf("end: %+v", end)
	}
}

func FuzzClaudeLines(f *testing.F) {
	f.Add(claudeInit, claudeGood)
	f.Add(`{"type":"assistant","message":{"id":"a","model":"m","content":[{"type":"tool_use","id":"t","name":"Bash","input":{}}],"usage":{"input_tokens":-1,"output_tokens":1e300}}}`, `{"type":"user","message":{"content":[{"type":"tool_result","tool_use_id":"t","content":[{"type":"image"}]}]}}`)
	f.Add(`{"type":"stream_event","event":{"type":"message_start","message":{"id":"a","usage":{}}}}`, `{"type":"stream_event","event":{"type":"message_stop"}}`)
	f.Add(`{"type":"result","is_error":7,"total_cost_usd":1e999,"model_usage_since_last_result":{"m":{"costUSD":-1}}}`, `{"type":"user","isReplay":true,"message":{"content":"x"}}`)
	f.Add(`{"type":"user","message":{"content":[{"type":"tool_result"`, `null`)
	f.Fuzz(func(t *testing.T, a, b string) {
		l := claude{}.Lines(agent.UsageEvent{})
		var events []agent.Event
		for _, x := range []string{a, b, a, b} {
			events = append(events, l.Line([]byte(x))...)
		}
		wellFormed(t, events, l.End(Exit{Code: 1}))
	})
}
