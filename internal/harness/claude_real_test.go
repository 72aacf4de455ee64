package harness_test

import (
	"errors"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness"
	"rnix/internal/harness/vendortest"
	"rnix/types"
)

func TestRealClaudeWorksWithItsOwnTools(t *testing.T) {
	v := vendortest.New(t, nil)
	file := filepath.Join(v.Work, "a.txt")
	v.Answer(vendortest.Play(
		call("Write", map[string]any{"file_path": file, "content": "written by the agent"}),
		call("Bash", map[string]any{"command": "rm -rf " + v.Work, "description": "x"}), // not allowed
		say("all done")))
	r := start(t, v, "claude", agent.Spec{Prompt: "write a.txt", SystemPromptAppend: "APPENDED-WORDS"})
	events, exit := r.end()
	if want := []agent.EventKind{"init", "assistant_text", "tool_use", "usage", "tool_result", "assistant_text", "tool_use", "usage", "tool_result", "assistant_text", "usage", "result"}; !slices.Equal(unordered(kinds(events)), unordered(want)) {
		t.Errorf("events: %s", show(events))
	}
	if b, err := os.ReadFile(file); err != nil || string(b) != "written by the agent" {
		t.Errorf("%q %v", b, err)
	}
	init := last[agent.InitEvent](events)
	if init.SessionID == "" || init.Model == "" || init.CWD != v.Work || !slices.Contains(init.Tools, "Write") {
		t.Errorf("%+v", init)
	}
	uses, results := each[agent.ToolUseEvent](events), each[agent.ToolResultEvent](events)
	if len(uses) != 2 || len(results) != 2 || uses[0].ToolUseID != results[0].ToolUseID || uses[1].ToolUseID != results[1].ToolUseID {
		t.Fatalf("%+v %+v", uses, results)
	}
	if uses[0].ToolName != "Write" || uses[0].Category != "file" || !strings.Contains(string(uses[0].Input), "a.txt") || results[0].IsError || results[0].ToolName != "Write" || !results[1].IsError {
		t.Errorf("%+v %+v", uses, results)
	}
	end := last[agent.ResultEvent](events)
	one := agent.UsageEvent{Model: init.Model, Input: 100, Output: 10, CacheRead: 20, CacheWrite: 5}
	if d := cmp.Diff([]agent.UsageEvent{one, one, one}, each[agent.UsageEvent](events)); d != "" {
		t.Error(d)
	}
	if !end.Success || end.Message != "all done" || end.Turns != 3 || end.Usage.CostUSD <= 0 || end.Usage.Input != 300 || end.Usage.Output != 30 || end.Usage.CacheRead != 60 || !end.Usage.Total || exit.Code != 0 {
		t.Errorf("%+v %+v %+v", end, end.Usage, exit)
	}
	deltas := ""
	for _, a := range each[agent.AssistantTextEvent](events) {
		if a.Delta {
			deltas += a.Text
		}
	}
	if !strings.HasSuffix(deltas, "all done") {
		t.Errorf("deltas: %q", deltas)
	}
	if first := v.Requests()[0]; !strings.Contains(first.System, "APPENDED-WORDS") {
		t.Error("the appended prompt is not there")
	}
}

// unordered sorts what may come in either order: the usage of a request and the result of its tool.
func unordered(k []agent.EventKind) []agent.EventKind { return slices.Sorted(slices.Values(k)) }

func TestRealClaudeGoesOnWithItsSession(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("one"), say("two")))
	first, _ := start(t, v, "claude", agent.Spec{Prompt: "the first thing"}).end()
	id := last[agent.InitEvent](first).SessionID
	events, _ := start(t, v, "claude", agent.Spec{Prompt: "the second thing", Resume: id, BaseInstructions: "OTHER-RULES"}).end()
	end, before := last[agent.ResultEvent](events), last[agent.ResultEvent](first)
	if last[agent.InitEvent](events).SessionID != id || !end.Success || end.Message != "two" {
		t.Errorf("%s", show(events))
	}
	if d := cmp.Diff(before.Usage, end.Usage); d != "" { // the same again, not twice as much
		t.Error(d)
	}
	if asked := v.Requests(); len(asked) != 2 || !vendortest.Heard(asked[1], "the first thing") || !vendortest.Heard(asked[1], "one") || !strings.Contains(asked[1].System, "OTHER-RULES") {
		t.Errorf("%d requests", len(asked))
	}
}

func TestRealClaudeSaysThatThereIsNoSuchSession(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("one")))
	r := start(t, v, "claude", agent.Spec{Prompt: "go on", Resume: "11111111-1111-4111-8111-111111111111"})
	events, _ := r.ended()
	if e := events[len(events)-1]; harness.CodeOf(e) != types.ErrNotFound {
		t.Errorf("%s", show(events))
	}
}

func TestRealClaudeHearsWhatIsSaidWhileItWorks(t *testing.T) {
	v := vendortest.New(t, nil)
	gate := filepath.Join(v.Work, "gate")
	v.Answer(vendortest.Play(call("Bash", map[string]any{"command": "until [ -e gate ]; do sleep 0.05; done; echo passed", "description": "waits"}), say("done"), say("and again")))
	r := start(t, v, "claude", agent.Spec{Prompt: "wait for the gate", AllowedTools: []string{"Bash"}})
	r.await(0, "the call", func(e agent.Event) bool { _, ok := e.(agent.ToolUseEvent); return ok })
	line, err := r.cli.Steer("use the \"other\"\nfile")
	if err != nil {
		t.Fatal(err)
	}
	r.write(line)
	if err := os.WriteFile(gate, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	heard := r.await(0, "a sign that it heard", func(e agent.Event) bool {
		s, ok := e.(agent.SystemEvent)
		return ok && s.Subtype == harness.SystemHeard && s.Message == "use the \"other\"\nfile"
	})
	_, i := r.turn(heard)
	if line, err = r.cli.Steer("one more turn"); err != nil {
		t.Fatal(err)
	}
	r.write(line)
	end, _ := r.turn(i + 1)
	events, exit := r.end()
	if !end.Success || end.Message != "and again" || end.Usage.Input != 300 || exit.Code != 0 || len(each[agent.InitEvent](events)) != 1 {
		t.Errorf("%+v: %s", end.Usage, show(events))
	}
	if asked := v.Requests(); len(asked) != 3 || !vendortest.Heard(asked[1], "use the \"other\"") || !vendortest.Heard(asked[2], "one more turn") {
		t.Errorf("%d requests", len(asked))
	}
}

func TestRealClaudeIsInterruptedAndGoesOn(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(llmtest.Reply{Text: "I begin", Hang: true, Usage: used}, say("fine")))
	r := start(t, v, "claude", agent.Spec{Prompt: "begin"})
	r.await(0, "the beginning of an answer", func(e agent.Event) bool { a, ok := e.(agent.AssistantTextEvent); return ok && a.Delta })
	line, err := r.cli.Interrupt()
	if err != nil {
		t.Fatal(err)
	}
	r.write(line)
	cut, i := r.turn(0)
	if cut.Success || harness.CodeOf(cut) != types.ErrCancelled {
		t.Errorf("%+v", cut)
	}
	if line, err = r.cli.Steer("go on"); err != nil {
		t.Fatal(err)
	}
	r.write(line)
	end, _ := r.turn(i + 1)
	if _, exit := r.end(); !end.Success || end.Message != "fine" || exit.Code != 0 {
		t.Errorf("%+v %+v", end, exit)
	}
}

func TestRealClaudeHasNoToolsButTheGivenOnes(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(call("mcp__rnix__echo", map[string]any{"text": "hello"}), call("mcp__rnix__fail", map[string]any{"text": "no"}), say("done")))
	server, err := vendortest.MCPServer("rnix", "SERVED")
	if err != nil {
		t.Fatal(err)
	}
	r := start(t, v, "claude", agent.Spec{Prompt: "/echo hello", NoOwnTools: true, MCPServers: []agent.MCPServerConfig{server}})
	events, _ := r.end()
	init := last[agent.InitEvent](events)
	if !slices.Equal(init.Tools, []string{"mcp__rnix__echo", "mcp__rnix__fail"}) || init.MCPServers["rnix"] != "connected" {
		t.Errorf("%+v", init)
	}
	results := each[agent.ToolResultEvent](events)
	if len(results) != 2 || results[0].Content != "SERVED hello" || results[0].IsError || !results[1].IsError || each[agent.ToolUseEvent](events)[0].Category != "mcp" {
		t.Errorf("%s", show(events))
	}
	if !last[agent.ResultEvent](events).Success {
		t.Errorf("%s", show(events))
	}
	for _, n := range v.Requests()[0].Tools {
		if !strings.HasPrefix(n, "mcp__rnix__") && n != "DeferredToolPlaceholder" { // which does nothing
			t.Errorf("the model is offered %s", n)
		}
	}
}

func TestRealClaudeRunsNoProgramsOfAProjectThatIsNotTrusted(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("read")))
	mark := filepath.Join(v.Home, "hooked")
	write := func(name, text string) {
		path := filepath.Join(v.Work, name)
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	write("CLAUDE.md", "PROJECT-WORDS")
	write(".claude/settings.json", `{"hooks":{"UserPromptSubmit":[{"hooks":[{"type":"command","command":"touch `+mark+`"}]}]}}`)
	write(".mcp.json", `{"mcpServers":{"evil":{"type":"stdio","command":"touch","args":["`+mark+`"]}}}`)
	events, _ := start(t, v, "claude", agent.Spec{Prompt: "look"}).end()
	if _, err := os.Stat(mark); err == nil || !last[agent.ResultEvent](events).Success {
		t.Errorf("%v: %s", err, show(events))
	}
	if !vendortest.Heard(v.Requests()[0], "PROJECT-WORDS") {
		t.Error("it has not heard the project's instructions")
	}
}

func TestRealClaudeThatMayOnlyReadHasNoToolThatWrites(t *testing.T) {
	v := vendortest.New(t, vendortest.Play(say("read")))
	events, _ := start(t, v, "claude", agent.Spec{Prompt: "look", SandboxLevel: harness.SandboxReadOnly}).end()
	if tools := last[agent.InitEvent](events).Tools; !slices.Contains(tools, "Read") || slices.Contains(tools, "Bash") || slices.Contains(tools, "Write") || slices.Contains(tools, "Edit") {
		t.Errorf("%v", tools)
	}
}

func TestRealClaudeStopsAtItsLimits(t *testing.T) {
	for _, c := range []struct {
		name string
		spec agent.Spec
		why  string
	}{
		{"turns", agent.Spec{MaxTurns: 1}, harness.WhyTurns},
		{"dollars", agent.Spec{MaxBudgetUSD: 0.0001}, harness.WhyBudget},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := vendortest.New(t, vendortest.Play(call("Bash", map[string]any{"command": "echo a", "description": "x"})))
			c.spec.Prompt = "go"
			events, _ := start(t, v, "claude", c.spec).end()
			if e := last[agent.ResultEvent](events); e.Success || e.Subtype != c.why || harness.CodeOf(e) != types.ErrExhausted || e.Usage.CostUSD <= 0 {
				t.Errorf("%s", show(events))
			}
		})
	}
}

func TestRealClaudeSaysWhatTheVendorRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		reply llmtest.Reply
		code  types.ErrCode
	}{
		{"a wrong key", llmtest.Reply{Status: http.StatusUnauthorized, Text: "invalid x-api-key"}, types.ErrAuth},
		{"too much", llmtest.Reply{Status: http.StatusTooManyRequests, Text: "slow down"}, types.ErrRateLimited},
		{"overload", llmtest.Reply{Status: 529, Text: "overloaded"}, types.ErrUnavailable},
	} {
		t.Run(c.name, func(t *testing.T) {
			v := vendortest.New(t, vendortest.Play(c.reply))
			events, exit := start(t, v, "claude", agent.Spec{Prompt: "hi"}).end()
			e := events[len(events)-1]
			if harness.CodeOf(e) != c.code || exit.Code == 0 || len(each[agent.AssistantTextEvent](events)) > 0 {
				t.Errorf("%v: %s", exit, show(events))
			}
		})
	}
}

func TestRealClaudeThatIsKilledHasNoResult(t *testing.T) {
	for _, c := range []struct {
		sig  syscall.Signal
		exit harness.Exit
	}{{syscall.SIGKILL, harness.Exit{Code: 137, Signal: 9}}, {syscall.SIGTERM, harness.Exit{Code: 143}}} {
		t.Run(c.sig.String(), func(t *testing.T) {
			v := vendortest.New(t, vendortest.Play(llmtest.Reply{Text: "I begin", Hang: true, Usage: used}))
			r := start(t, v, "claude", agent.Spec{Prompt: "begin"})
			r.await(0, "the beginning of an answer", func(e agent.Event) bool { a, ok := e.(agent.AssistantTextEvent); return ok && a.Delta })
			r.child.Signal(c.sig)
			events, exit := r.ended()
			if exit.Stderr = ""; exit != c.exit {
				t.Errorf("%+v", exit)
			}
			if e, ok := events[len(events)-1].(agent.ErrorEvent); !ok || e.Code != harness.WhyNoResult {
				t.Errorf("%s", show(events))
			}
		})
	}
}
