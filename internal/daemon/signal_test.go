package daemon_test

import (
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// asleep is a system with a model that never answers, and agents in it, by their intents.
func asleep(t *testing.T, intents ...string) (*testenv.System, map[string]ipc.SpawnResponse) {
	t.Helper()
	asked := make(chan struct{}, 100)
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		asked <- struct{}{}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	by := map[string]ipc.SpawnResponse{}
	for _, intent := range intents {
		by[intent] = s.Spawn(ipc.SpawnRequest{Intent: intent, ProcSpec: types.ProcSpec{Model: "fake", Name: intent}})
		<-asked
	}
	return s, by
}

func rowOf(t *testing.T, s *testenv.System, p ipc.SpawnResponse) ipc.Proc {
	t.Helper()
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	return d.Proc
}

// A restart of the daemon is nothing that a paused agent, or who looks at it, notices.
func TestPausedAgentLooksTheSameAfterARestart(t *testing.T) {
	s, by := asleep(t, "night")
	p := by["night"]
	signal(t, s, p.PID, types.SIGPAUSE)
	before := rowOf(t, s, p)
	if before.PausedAt.IsZero() || before.Wait != "paused" {
		t.Fatalf("%+v", before)
	}
	for _, end := range []func(){s.Stop, s.Kill} {
		end()
		s.Start()
		s.Settle()
		after := rowOf(t, s, p)
		if d := after.PausedAt.Sub(before.PausedAt).Abs(); after.State != before.State || after.Wait != before.Wait || d > time.Second || !after.WaitSince.Equal(after.PausedAt) {
			t.Errorf("before %+v\nafter  %+v", before, after)
		}
		if d := after.ElapsedMs - before.ElapsedMs; d < -1000 || d > 1000 {
			t.Errorf("it had worked %d ms, and %d ms after the restart", before.ElapsedMs, after.ElapsedMs)
		}
		signal(t, s, p.PID, types.SIGPAUSE) // as one that is paused in memory takes it
	}
	signal(t, s, p.PID, types.SIGKILL)
	if w := s.Wait(p.PID); w.Suspended || w.Exit.Code != types.ExitError || w.Exit.Reason != types.ReasonCancelledPaused {
		t.Errorf("%+v", w)
	}
}

// What is about to go on by itself can be ended, and does not go on.
func TestKillBeforeAnAgentGoesOnByItself(t *testing.T) {
	s, by := asleep(t, "a", "b", "c")
	s.Kill()
	s.Start()
	for _, p := range by {
		until(t, "all go on", func() bool { q := rowOf(t, s, p); return q.State == "running" && q.PID > p.PID })
	}
	s.Kill() // twice in one step: they wait some seconds before they go on now
	s.Start()
	s.Settle()
	for _, c := range []struct {
		name   string
		sig    types.Signal
		method ipc.Method[ipc.SignalRequest, ipc.SignalResponse]
		reason string
	}{{"a", types.SIGKILL, ipc.Signal, "killed"}, {"b", types.SIGTERM, ipc.SignalTree, "terminated"}} {
		r, err := ipc.Call(t.Context(), s.Client, c.method, ipc.SignalRequest{Target: by[c.name].PID.String(), Signal: c.sig})
		if err != nil || r.Affected != 1 || r.UUID != by[c.name].UUID {
			t.Fatalf("%+v %v", r, err)
		}
		if w := s.Wait(r.PID); w.Suspended || w.Exit.Code != types.ExitCancelled || w.Exit.Reason != c.reason {
			t.Errorf("%s: %+v", c.name, w)
		}
	}
	until(t, "the third goes on", func() bool { p := rowOf(t, s, by["c"]); return p.State == "running" && p.PID > by["c"].PID })
	for _, name := range []string{"a", "b"} {
		if p := rowOf(t, s, by[name]); p.State != "dead" || p.PID != rowOf(t, s, by[name]).PID {
			t.Errorf("%+v", p)
		}
	}
}

// Whenever a kill comes while the daemon starts, it is the last word.
func TestKillWhileAgentsGoOnIsTheLastWord(t *testing.T) {
	s, by := asleep(t, "a", "b", "c", "d")
	s.Stop()
	s.Start()
	for _, p := range by { // they are about to go on, go on in this moment, or have
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: p.UUID.String(), Signal: types.SIGKILL}); err != nil {
			t.Error(err)
		}
	}
	s.Settle()
	for name, p := range by {
		w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String(), TimeoutMs: 30_000})
		if err != nil || w.Suspended || w.Exit.Code != types.ExitCancelled {
			t.Errorf("%s: %+v %v", name, w, err)
		}
	}
}
