package main

import (
	"strings"
	"syscall"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
)

// An agent CLI and the agent CLI that it has started are paused as a tree, and go on as a tree under the next daemon.
func TestRealClaudeIsResumedWithTheClaudeThatItHasStarted(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.allowed("Bash")
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		switch {
		case vendortest.Heard(r, "You were interrupted"):
			return llmtest.Reply{Text: "went on"}
		case vendortest.Heard(r, "be the parent"):
			return use("Bash", map[string]any{"command": "rnix run --detach --harness claude --name q 'be the child' && " + strings.ReplaceAll(waits, "began", "parent"), "description": "starts"})
		}
		return use("Bash", map[string]any{"command": waits, "description": "waits"})
	})
	u.must("run", "--detach", "--harness", "claude", "--name", "p", "be the parent")
	u.exists("began")
	u.exists("parent")
	if out := u.must("pause", "--subtree", "p"); !strings.Contains(out, "1 descendant") {
		t.Error(out)
	}
	if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.must("daemon", "start")
	u.eventually(`suspended +paused.*\n.*suspended +paused`, "ps")
	u.must("resume", "--subtree", "p")
	for _, name := range []string{"p", "q"} {
		if out := u.must("wait", name); !strings.Contains(out, "went on") {
			t.Errorf("%s: %s\n%s", name, out, u.must("log", name))
		}
	}
}
