package daemon_test

import (
	"fmt"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A daemon that is killed between the last step of an agent and the record of its end finds the end in the step: the
// model is not asked, and paid, once more. What a person or another process says meanwhile is heard.
func TestAnAnswerThatEndsAnAgentIsNotAskedForAgainAfterAKill(t *testing.T) {
	for _, how := range []struct {
		name string
		last llmtest.Reply
		said string // by a person who resumes it
		want string
		asks int32 // after the kill
		opts ipc.SpawnRequest
	}{
		{"text", llmtest.Reply{Text: "all is done"}, "", "all is done", 0, ipc.SpawnRequest{}},
		{"complete", tool("complete", `{"result":"all is done"}`), "", "all is done", 0, ipc.SpawnRequest{}},
		{"with its last step", llmtest.Reply{Text: "all is done"}, "", "all is done", 0, ipc.SpawnRequest{ProcSpec: types.ProcSpec{MaxSteps: new(2)}}},
		{"text, and a person says more", llmtest.Reply{Text: "all is done"}, "and now the other", "the other too", 1, ipc.SpawnRequest{}},
	} {
		t.Run(how.name, func(t *testing.T) {
			var asks atomic.Int32
			_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
				asks.Add(1)
				if how.said != "" && r.Messages[len(r.Messages)-1].Text == how.said {
					return llmtest.Reply{Text: "the other too"}
				}
				if _, told := r.LastResult(); told {
					return how.last
				}
				return tool("write_file", `{"path":"a","content":"x"}`)
			})
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, fmt.Sprint("RNIX_DAEMON_AUTO_RESUME=", how.said == ""))
			how.opts.Intent, how.opts.Model = "work", "fake"
			p := s.Spawn(how.opts)
			s.Wait(p.PID)
			kill(t, s)
			cut(t, s, p.UUID, false, func(r *step.Record) bool { return r.Kind == step.KindStep && r.Step.End != nil })
			before := asks.Load()
			s.Start()
			s.Settle()
			if how.said != "" {
				if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, NewInput: how.said}); err != nil {
					t.Fatal(err)
				}
			}
			until(t, "it has ended", func() bool { return procsOf(t, s)[p.UUID].State == "dead" })
			q := procsOf(t, s)[p.UUID]
			result := s.Wait(q.PID).Result
			if q.Exit == nil || q.Exit.Code != 0 || result != how.want || asks.Load()-before != how.asks {
				t.Errorf("asked %d times more, ended with %+v %q", asks.Load()-before, q.Exit, result)
			}
			if how.asks == 0 && q.Step != 2 {
				t.Errorf("it is at step %d", q.Step)
			}
			sound(t, s)
		})
	}
}

// Who resumes an agent that went on by itself meanwhile, and has ended, is told that: it is not asked, and paid, once
// more for what was wanted once. A second time it is what was meant.
func TestWhoResumesWhatWentOnByItselfAndHasEndedPaysNothing(t *testing.T) {
	var asks atomic.Int32
	free := make(chan struct{})
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if asks.Add(1) == 1 {
			<-free
		}
		return llmtest.Reply{Text: fmt.Sprint("answer ", asks.Load())}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	until(t, "it is asked", func() bool { return asks.Load() == 1 })
	kill(t, s)
	close(free)
	s.Start()
	s.Settle()
	until(t, "it has ended", func() bool { return procsOf(t, s)[p.UUID].State == "dead" })
	for _, want := range []struct {
		asks int32
		warn int
	}{{2, 1}, {3, 0}} {
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env})
		if err != nil {
			t.Fatal(err)
		}
		if len(r.Warnings) != want.warn {
			t.Errorf("warnings: %q", r.Warnings)
		}
		until(t, "it has ended", func() bool { return procsOf(t, s)[p.UUID].State == "dead" })
		if i := s.Wait(r.PID); asks.Load() != want.asks || i.Result != fmt.Sprint("answer ", want.asks) || r.UUID != p.UUID {
			t.Errorf("asked %d times, not %d: %q", asks.Load(), want.asks, i.Result)
		}
	}
	sound(t, s)
}
