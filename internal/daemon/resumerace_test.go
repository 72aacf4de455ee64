package daemon_test

import (
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// Of several who resume a process at once one wins; each of the others reads what is true: somebody was quicker.
func TestTheLoserOfTwoResumesReadsWhatIsTrue(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.LastUser() == "work" {
			return llmtest.Reply{Text: "done"}
		}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Wait(p.PID)
	for range 5 {
		errs := make([]error, 8)
		var wg sync.WaitGroup
		for i := range errs {
			wg.Go(func() {
				_, errs[i] = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, NewInput: "more"})
			})
		}
		wg.Wait()
		won := 0
		for _, err := range errs {
			switch {
			case err == nil:
				won++
			case types.CodeOf(err) != types.ErrConflict, !strings.Contains(err.Error(), "another c") && !strings.Contains(err.Error(), "it is running as PID"):
				t.Errorf("a loser reads: %v", err)
			}
		}
		if won != 1 {
			t.Errorf("%d have won: %v", won, errs)
		}
		d := detail(t, s, p.UUID.String())
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: d.UUID.String(), Signal: types.SIGKILL}); err != nil {
			t.Fatal(err)
		}
		s.Wait(d.PID)
	}
}
