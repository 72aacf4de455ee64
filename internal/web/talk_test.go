package web

import (
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
)

// speaker is a model that thinks and speaks slowly: its first answer without end, until the daemon is gone.
type speaker struct{ slow atomic.Int32 }

func (m *speaker) speak(r llmtest.Request) llmtest.Reply {
	text := said(r)
	switch {
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
		case "kill":
			s.Kill()
		case "start":
			s.Start()
		}
		return "done"
	})
}
