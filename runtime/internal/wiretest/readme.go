package wiretest

import (
	"os"
	"strings"
	"testing"
)

// Readme checks that each Go example of README.md is code that compiles: its lines stand, one after the other, in
// example_test.go.
func Readme(t *testing.T) {
	t.Helper()
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	code, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	have, found := plain(string(code)), 0
	for _, block := range strings.Split(string(page), "```go\n")[1:] {
		block, _, _ = strings.Cut(block, "```")
		found++
		if !strings.Contains(have, plain(block)) {
			t.Errorf("this example of README.md does not stand in example_test.go:\n%s", block)
		}
	}
	if found == 0 {
		t.Error("README.md has no example")
	}
}

// plain returns the lines of a text without indentation and empty lines.
func plain(text string) string {
	var out []string
	for _, l := range strings.Split(text, "\n") {
		if l = strings.TrimSpace(l); l != "" {
			out = append(out, l)
		}
	}
	return strings.Join(out, "\n")
}
