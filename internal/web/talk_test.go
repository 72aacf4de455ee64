package web

import (
	"encoding/json"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
)

// markdownText is an answer with all that a page shows, and much that it must not.
const markdownText = "# What I did\n\n1. made `made.txt`\n2. **looked** at it, as [the page](https://evil.example/) says\n\n| file | lines |\n|---|---|\n| made.txt | 2 |\n\n" +
	"```go\nfunc main() { fmt.Println(\"a long line of code that has to be scrolled sideways on a phone, or else the page gets wide\") }\n```\n\n" +
	"```diff\n--- a/made.txt\n+++ b/made.txt\n@@ -1 +1 @@\n-two\n+three\n```\n\n> " + hostileText + "\n\n![x](https://evil.example/p.png) <b>bold</b>\n\nthe last line"

// speaker is a model that thinks and speaks slowly: its first answer without end, until the daemon is gone.
type speaker struct{ slow atomic.Int32 }

func (m *speaker) speak(r llmtest.Request) llmtest.Reply {
	text := strings.TrimSpace(said(r))
	results := 0
	for _, m := range r.Messages {
		results += len(m.Results)
	}
	call := func(name string, input map[string]any) llmtest.Reply {
		b, _ := json.Marshal(input) // strings always can
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprint("c", results), Name: name, Input: string(b)}}}
	}
	switch {
	case strings.Contains(text, "say more"), strings.Contains(text, "now say"):
		return llmtest.Reply{Text: "You said more."}
	case strings.Contains(text, "say nothing") && !strings.Contains(text, "Your last answer was empty"):
		return llmtest.Reply{}
	case strings.Contains(text, "show all"):
		switch results {
		case 0:
			return call("write_file", map[string]any{"path": "made.txt", "content": "one\n" + hostileText})
		case 1:
			return call("shell", map[string]any{"command": "cat made.txt; echo '" + strings.Repeat("y", 3000) + "'"})
		}
		return llmtest.Reply{Text: markdownText}
	case text == "ask me" && results == 0:
		return call("ask", map[string]any{"question": "Which colour?", "choices": []string{"red", "blue"}})
	case text == "ask me":
		return llmtest.Reply{Text: "You like blue."}
	case text == "have a child" && results == 0:
		return call("spawn", map[string]any{"intent": "be small"})
	case text == "fail":
		return llmtest.Reply{Status: 400, Text: "no"}
	case strings.Contains(text, "busily") && results == 0:
		return call("shell", map[string]any{"command": "until [ -e release ]; do sleep 0.5; done"})
	case strings.Contains(text, "without end"):
		return llmtest.Reply{Text: "on and on ", Pause: 50 * time.Millisecond, Endless: true}
	case strings.Contains(text, "slowly"):
		var b strings.Builder
		for i := range 20 {
			fmt.Fprintf(&b, "word%d ", i)
		}
		reply := llmtest.Reply{Reasoning: "first I consider\nthen I speak", Text: b.String() + "\n\n**the end of it**", Chunks: 20, Pause: 50 * time.Millisecond}
		reply.Endless = m.slow.Add(1) == 1
		return reply
	}
	return llmtest.Reply{Text: "Done."}
}

func TestAPersonTalksWithAgentsInABrowser(t *testing.T) {
	chromium := needsBrowser(t)
	_, url := llmtest.NewAPI(t, new(speaker).speak)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	d := serve(t, Options{Socket: s.Socket(), Env: s.Env, Dir: s.Work})
	d.scenario(chromium, "talk.mjs", func(word string) string {
		switch what, arg, _ := strings.Cut(word, " "); what {
		case "spawn":
			return s.Spawn(ipc.SpawnRequest{Intent: arg}).UUID.String()
		case "release":
			s.Write("release", "")
		case "kill":
			s.Kill()
		case "start":
			s.Start()
		}
		return "done"
	})
}
