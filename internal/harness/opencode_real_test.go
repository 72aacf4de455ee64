package harness_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness"
	"rnix/internal/harness/vendortest"
	"rnix/types"
)

// A call takes it nine seconds and more, so this is one story.
func TestRealOpencode(t *testing.T) {
	var script func(llmtest.Request) llmtest.Reply
	v := vendortest.New(t, func(r llmtest.Request) llmtest.Reply { return script(r) })
	dir := v.UsedOpencode(t)
	config, err := json.Marshal(map[string]any{"model": "fake/m1", "provider": map[string]any{"fake": map[string]any{
		"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": map[string]string{"baseURL": v.URL + "/v1", "apiKey": "{env:OPENAI_API_KEY}"},
		"models": map[string]any{"m1": map[string]any{"name": "m1", "cost": map[string]int{"input": 1, "output": 2}, "limit": map[string]int{"context": 100000, "output": 1000}}}}}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "opencode.json"), config, 0o600); err != nil {
		t.Fatal(err)
	}
	server, err := vendortest.MCPServer("rnix", "SERVED")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(v.Work, "a.txt")

	// Its own tools, as far as it may use them.
	project := filepath.Join(v.Work, "AGENTS.md")
	if err := os.WriteFile(project, []byte("PROJECT-WORDS"), 0o600); err != nil {
		t.Fatal(err)
	}
	replies := []llmtest.Reply{call("write", map[string]any{"filePath": file, "content": "written"}), call("bash", map[string]any{"command": "touch b.txt", "description": "x"}), say("all done")}
	script = func(r llmtest.Request) llmtest.Reply { return replies[min(len(replies)-1, r.N)] }
	r := start(t, v, "opencode", agent.Spec{Prompt: "write a.txt", SandboxLevel: harness.SandboxWorkspace, SystemPromptAppend: "APPENDED-WORDS"})
	events, _ := r.end()
	if b, err := os.ReadFile(file); err != nil || string(b) != "written" {
		t.Errorf("%q %v", b, err)
	}
	if _, err := os.Stat(filepath.Join(v.Work, "b.txt")); err == nil {
		t.Error("it has used a shell")
	}
	want := []agent.EventKind{"assistant_text", "assistant_text", "assistant_text", "init", "result", "tool_result", "tool_result", "tool_use", "tool_use", "usage", "usage", "usage"}
	if got := unordered(kinds(events)); !slices.Equal(got, want) || agent.KindOf(events[0]) != agent.EventInit {
		t.Errorf("%s", show(events))
	}
	end, id := last[agent.ResultEvent](events), last[agent.InitEvent](events).SessionID
	if d := cmp.Diff(agent.UsageEvent{Input: 300, Output: 30, CacheRead: 60, CostUSD: end.Usage.CostUSD, Total: true}, *end.Usage); d != "" {
		t.Error(d)
	}
	if !end.Success || end.Message != "all done" || end.Usage.CostUSD <= 0 || id == "" || !vendortest.Heard(v.Requests()[0], "write a.txt") || !strings.Contains(v.Requests()[0].System, "APPENDED-WORDS") || !strings.Contains(v.Requests()[0].System, "PROJECT-WORDS") {
		t.Errorf("%+v %+v", end, end.Usage)
	}

	// The session goes on, with no tools but the given ones.
	n := len(v.Requests())
	more := []llmtest.Reply{call("rnix_echo", map[string]any{"text": "hello"}), say("two")}
	script = func(r llmtest.Request) llmtest.Reply { return more[min(len(more)-1, r.N-n)] }
	events, _ = start(t, v, "opencode", agent.Spec{Prompt: "say hello", Resume: id, NoOwnTools: true, MCPServers: []agent.MCPServerConfig{server}}).end()
	if end = last[agent.ResultEvent](events); !end.Success || end.Message != "two" || end.Usage.Input != 200 || last[agent.InitEvent](events).SessionID != id {
		t.Errorf("%s", show(events))
	}
	if x := each[agent.ToolResultEvent](events); len(x) != 1 || x[0].Content != "SERVED hello" || x[0].IsError || each[agent.ToolUseEvent](events)[0].Category != "mcp" {
		t.Errorf("%s", show(events))
	}
	asked := v.Requests()[n:]
	if !slices.Equal(asked[0].Tools, []string{"rnix_echo", "rnix_fail"}) || !vendortest.Heard(asked[0], "all done") {
		t.Errorf("%v", asked[0].Tools)
	}

	// What the vendor refuses, in a project without instructions.
	if err := os.Remove(project); err != nil {
		t.Fatal(err)
	}
	script = func(llmtest.Request) llmtest.Reply {
		return llmtest.Reply{Status: http.StatusUnauthorized, Text: "wrong key"}
	}
	events, exit := start(t, v, "opencode", agent.Spec{Prompt: "x"}).end()
	if e := events[len(events)-1]; harness.CodeOf(e) != types.ErrAuth {
		t.Errorf("%+v: %s", exit, show(events))
	}
}
