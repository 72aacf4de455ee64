package main

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
)

// A real claude asks a person by the tool of the kernel, beside its own tools, also when the daemon is killed meanwhile; the tool with which it draws its own
// dialog it does not have, so no question of it is lost.
func TestRealClaudeAsksAPersonAQuestion(t *testing.T) {
	u := newUser(t, "claude", nil)
	boxed(t, u, "bwrap")
	var mu sync.Mutex // the API's requests come beside the test
	var own []string
	reply := use("mcp__rnix__ask", map[string]any{"question": "Which database?", "choices": []string{"Postgres", "SQLite"}})
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		own = append(own, r.Tools...)
		if res, ok := r.LastResult(); ok {
			return llmtest.Reply{Text: "it came to this: " + res.Text}
		}
		return reply
	})
	u.must("run", "-d", "--name", "one", "--harness", "claude", "do it")
	n := u.asks(1)
	if out := u.must("asks"); !strings.Contains(out, "| Which database?") || !strings.Contains(out, " 2  SQLite") {
		t.Error(out)
	}
	u.must("answer", n[0], "2")
	if out := u.must("wait", "one"); !strings.Contains(out, "SQLite") {
		t.Errorf("%s\n%s", out, u.must("log", "one"))
	}
	mu.Lock()
	reply = use("AskUserQuestion", map[string]any{"questions": []any{map[string]any{"question": "Which?", "header": "Which", "multiSelect": false,
		"options": []any{map[string]any{"label": "A", "description": "a"}, map[string]any{"label": "B", "description": "b"}}}}})
	mu.Unlock()
	out := u.must("run", "--harness", "claude", "do it")
	mu.Lock()
	defer mu.Unlock()
	if slices.Contains(own, "AskUserQuestion") || !strings.Contains(out, "No such tool") {
		t.Errorf("claude has its own tool for questions, which nothing answers: %q\n%s", own, out)
	}
}
