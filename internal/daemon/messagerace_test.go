package daemon_test

import (
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A message that is being written into the history of a suspended process, as word of a child's end is, does not
// keep the process from going on, and is delivered.
func TestProcessGoesOnWhileMessagesAreWrittenForIt(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); told {
			return llmtest.Reply{Hang: true}
		}
		reply := tool("shell", `{"command":"true"}`)
		reply.Usage = &llmtest.Usage{Input: 2000}
		return reply
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	for range 4 {
		budget := 1000
		p := s.Spawn(ipc.SpawnRequest{Intent: "go", ProcSpec: types.ProcSpec{Model: "fake", ContextBudget: &budget}})
		s.Wait(p.PID)
		stop := make(chan struct{})
		var senders sync.WaitGroup
		for range 3 {
			senders.Go(func() {
				for {
					select {
					case <-stop:
						return
					default:
					}
					_, err := ipc.Call(t.Context(), s.Client, ipc.Send, ipc.SendRequest{Target: p.UUID.String(), Text: "hello"})
					if err != nil && types.CodeOf(err) != types.ErrExhausted {
						t.Error(err)
					}
				}
			})
		}
		more := 1_000_000
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Budget: &more, Env: s.Env})
		close(stop)
		senders.Wait()
		if err != nil {
			t.Fatal(err)
		}
		signal(t, s, r.PID, types.SIGKILL)
	}
}
