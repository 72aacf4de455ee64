package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
)

// The first command of docs/sessions.md does its task on a machine where nothing was allowed to claude before: the sandbox bounds it, and no
// person could give it a permission. What the user's settings deny stays denied.
func TestRealClaudeDoesItsTaskOnAFreshMachine(t *testing.T) {
	for _, level := range []string{"bwrap", "landlock"} {
		t.Run(level, func(t *testing.T) {
			u := newUser(t, "claude", nil)
			boxed(t, u, level)
			settings, err := json.Marshal(map[string]any{"permissions": map[string]any{"deny": []string{"Bash(rm *)"}}})
			if err == nil {
				err = os.WriteFile(filepath.Join(u.Home, ".claude", "settings.json"), settings, 0o600)
			}
			if err != nil {
				t.Fatal(err)
			}
			said, turn := "", 0
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				if res, ok := r.LastResult(); ok {
					said += res.Text + "\n"
				} else {
					turn = 0
				}
				switch turn++; turn {
				case 1:
					return use("Bash", map[string]any{"command": "echo made > made.txt", "description": "makes"})
				case 2:
					return use("Bash", map[string]any{"command": "rm made.txt", "description": "removes"})
				}
				return llmtest.Reply{Text: "done"}
			})
			u.must("run", "--harness", "claude", "Make the tests of this project pass")
			if b, err := os.ReadFile(filepath.Join(u.Work, "made.txt")); err != nil || string(b) != "made\n" {
				t.Errorf("its command did not run, or what the user denies did: %v; it was told %s", err, said)
			}
			if !strings.Contains(strings.ToLower(said), "denied") {
				t.Errorf("what the user denies was not denied: it was told %s", said)
			}
		})
	}
}
