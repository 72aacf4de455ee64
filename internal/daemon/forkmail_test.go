package daemon_test

import (
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A fork gets no message that was sent to its origin, hears nothing of the origin's children, and takes what is
// sent to itself for new although the origin has it too.
func TestForkHasNoneOfTheMessagesOfItsOrigin(t *testing.T) {
	s, p := forkable(t)
	send := func(to, text string) {
		t.Helper()
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Send, ipc.SendRequest{Target: to, Text: text, Key: "k"}); err != nil {
			t.Fatal(err)
		}
	}
	send(p.UUID.String(), "for the origin")
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, Cwd: s.Work})
	if err != nil {
		t.Fatal(err)
	}
	s.Await(f.PID, event.StepStarted, nil)
	send(f.UUID.String(), "for the fork")
	s.Write("go", "")
	w := s.Wait(f.PID)
	if strings.Contains(w.Result, "for the origin") || strings.Contains(w.Result, "has completed") || strings.Count(w.Result, "for the fork") != 1 {
		t.Errorf("the fork was told: %s", w.Result)
	}
}

// forkable is a system with a process that has a child in the background which has ended, and waits for its
// model. A fork of it waits for a file, and answers with all that it was told.
func forkable(t *testing.T) (*testenv.System, ipc.SpawnResponse) {
	second := make(chan struct{}) // the second step has begun: what comes now is in the mailbox, and not in the conversation
	begins := sync.OnceFunc(func() { close(second) })
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		said, fork := "", false
		for _, m := range r.Messages {
			if fork = fork || strings.Contains(m.Text, "is a fork"); fork {
				said += m.Text + "\n"
			}
		}
		res, told := r.LastResult()
		switch {
		case r.Messages[0].Text == "kid":
			select {
			case <-second:
			case <-t.Context().Done():
			}
			return llmtest.Reply{Text: "kid is done"}
		case fork && strings.Contains(res.Text, "went on"):
			return llmtest.Reply{Text: said}
		case fork:
			return tool("shell", `{"command":"while ! test -e go; do sleep 0.2; done; echo went on"}`)
		case !told:
			return tool("spawn", `{"intent":"kid","background":true}`)
		}
		begins()
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 2 })
	s.Wait(p.PID + 1)
	return s, p
}
