package daemon_test

import (
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A process that is broken off again and again comes to its time limit all the same: what it has lived counts.
func TestTimeLimitCountsOverRestartsAndCrashes(t *testing.T) {
	for name, end := range map[string]func(*testenv.System){"killed": (*testenv.System).Kill, "stopped": (*testenv.System).Stop} {
		t.Run(name, func(t *testing.T) {
			_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
			p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, TimeoutMs: 2000})
			detail := func() ipc.ProcDetail {
				d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
				if err != nil {
					t.Fatal(err)
				}
				return d
			}
			again := func(req ipc.ResumeRequest) (ipc.ResumeResponse, error) {
				req.Target, req.Env = p.UUID.String(), s.Env
				return ipc.Call(t.Context(), s.Client, ipc.Resume, req)
			}
			d, runs := detail(), 1
			for ; d.Exit == nil && runs < 12; runs++ { // each run is shorter than the limit
				began := d.ElapsedMs
				until(t, "it has lived for a while", func() bool { d = detail(); return d.Exit != nil || d.ElapsedMs > began+500 })
				if d.Exit == nil {
					end(s)
					s.Start()
					s.Settle()
					if d = detail(); d.State == "suspended" && d.Exit == nil { // broken off too often: a person lets it go on
						if _, err := again(ipc.ResumeRequest{}); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
			if d.Exit == nil || d.Exit.Reason != types.ReasonTimeout+"2s" {
				t.Fatalf("after %d runs it has lived %d ms of 2000: %+v", runs, d.ElapsedMs, d.Exit)
			}

			if _, err := again(ipc.ResumeRequest{}); types.CodeOf(err) != types.ErrExhausted || !strings.Contains(err.Error(), "--timeout") {
				t.Errorf("resumed without more time: %v", err)
			}
			f, err := again(ipc.ResumeRequest{Fork: true})
			if err != nil {
				t.Fatal(err)
			}
			if w := s.Wait(f.PID); w.Exit.Reason != types.ReasonTimeout+"2s" || w.ElapsedMs < 2000 {
				t.Errorf("a fork ended with %v after %d ms", w.Exit, w.ElapsedMs)
			}
			more := time.Hour.Milliseconds()
			if _, err := again(ipc.ResumeRequest{TimeoutMs: &more}); err != nil {
				t.Errorf("resumed with more time: %v", err)
			}
		})
	}
}
