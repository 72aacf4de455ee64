package main

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
)

func TestRealCLIsAreAskedAgainUntilTheirResultFits(t *testing.T) {
	for _, name := range []string{"claude", "codex", "opencode"} {
		if left(t, name) {
			continue
		}
		t.Run(name, func(t *testing.T) {
			var mu sync.Mutex
			told := false
			u := newUser(t, name, nil)
			if name == "opencode" {
				u.opencodeConfig()
			}
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				if !strings.Contains(string(r.Body), "how many") {
					return llmtest.Reply{Text: "a title"}
				}
				if strings.Contains(string(r.Body), "Not accepted: the result is not JSON") {
					mu.Lock()
					defer mu.Unlock()
					told = told || strings.Contains(string(r.Body), "fits this JSON Schema")
					return llmtest.Reply{Text: `{"n": 7}`}
				}
				return llmtest.Reply{Text: "There are seven."}
			})
			file := filepath.Join(u.Work, "pair.json")
			if err := os.WriteFile(file, []byte(`{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}`), 0o600); err != nil {
				t.Fatal(err)
			}
			args := []string{"run", "--harness", name, "--output-schema", file, "how many"}
			if name == "opencode" {
				args = append(args, "--model", "fake/m1")
			}
			c := u.command(args...)
			var stderr strings.Builder
			c.Stderr = &stderr
			out, err := c.Output()
			if err != nil || string(out) != "{\"n\": 7}\n" {
				t.Errorf("%q, %v: %s", out, err, &stderr)
			}
			mu.Lock()
			defer mu.Unlock()
			if !told {
				t.Error("it was not told the schema")
			}
		})
	}
}
