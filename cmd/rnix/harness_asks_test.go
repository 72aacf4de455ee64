package main

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
)

// asks returns what waits for a person, when that is so many.
func (u *user) asks(n int) (numbers []string) {
	u.t.Helper()
	out := ""
	there := testenv.Within(3*time.Minute, func() bool { // an opencode starts slowly on a machine with other work
		numbers, out = nil, u.must("asks", "--json")
		for line := range strings.Lines(out) {
			var a struct {
				Number uint64 `json:"number"`
			}
			if err := json.Unmarshal([]byte(line), &a); err != nil {
				u.t.Fatalf("%v: %s", err, out)
			}
			numbers = append(numbers, strconv.FormatUint(a.Number, 10))
		}
		return len(numbers) == n
	})
	if !there {
		u.t.Fatalf("it has asked %s, want %d\n%s", out, n, u.must("ps", "-a"))
	}
	return numbers
}

// calls has the model make calls one after the other, and say what all of them gave.
func (u *user) calls(all ...llmtest.Reply) {
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		var gave []string
		for _, m := range r.Messages {
			for _, res := range m.Results {
				gave = append(gave, res.Text)
			}
		}
		if len(gave) < len(all) {
			return all[len(gave)]
		}
		return llmtest.Reply{Text: "it came to this: " + strings.Join(gave, "; ")}
	})
}

func bash(command string) llmtest.Reply {
	return use("Bash", map[string]any{"command": command, "description": "tries"})
}
