package daemon_test

import (
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// TestThoughtsOutliveKillsAndForks says that what a model has thought goes back to it after the daemon was killed, and in a fork, to the last piece and in the same place, and that it is not shown as text.
func TestThoughtsOutliveKillsAndForks(t *testing.T) {
	var stay, end atomic.Bool
	var most atomic.Int64 // thoughts that came back at once
	asked := make(chan int, 1000)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if !strings.HasSuffix(r.Path, "/responses") {
			t.Errorf("asked at %s", r.Path)
		}
		n := strings.Count(string(r.Body), `"encrypted_content":"sealed:`)
		most.Store(int64(n))
		if calls := strings.Count(string(r.Body), `"type":"function_call"`); n != calls {
			t.Errorf("request %d has %d thoughts and %d calls", r.N, n, calls)
		}
		asked <- n
		switch {
		case stay.Load():
			return llmtest.Reply{Hang: true}
		case end.Load():
			return llmtest.Reply{Text: "done"}
		}
		reply := tool("list_files", `{}`)
		reply.Reasoning = "I look once more."
		return reply
	})
	s := testenv.New(t, "OPENAI_API_KEY=k")
	configure(t, s, "providers.yaml", "providers:\n  - {name: openai, base_url: "+url+"/v1, api: responses, default_model: m}\n")
	steps := 0
	p := s.Spawn(ipc.SpawnRequest{Intent: "look", ProcSpec: types.ProcSpec{Provider: "openai", MaxSteps: &steps}})
	s.Await(p.PID, event.StepEnded, func(e *event.Event) bool { return e.Step >= 3 })
	stay.Store(true)
	for n := <-asked; n < 3 || len(asked) > 0; n = <-asked {
	}
	s.Kill()
	stay.Store(false)
	end.Store(true)
	s.Start()
	s.Settle()
	w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()})
	if err != nil || w.Result != "done" || most.Load() < 3 {
		t.Fatalf("%+v %v, %d thoughts came back", w, err, most.Load())
	}
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Fork: true, FromStep: new(2), NewInput: "again", Cwd: t.TempDir()})
	if err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(f.PID); w.Result != "done" || most.Load() != 2 {
		t.Errorf("a fork from step 2: %+v, %d thoughts came back", w, most.Load())
	}
}
