package daemon_test

import (
	"maps"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// still is a model whose agents make no progress, each in another way.
func still(r llmtest.Request) llmtest.Reply {
	if _, told := r.LastResult(); told {
		return llmtest.Reply{Text: "done"}
	}
	switch intent := r.LastUser(); {
	case strings.HasPrefix(intent, "talk"):
		return tool("shell", `{"command":"until [ -e enough ]; do echo word; sleep 0.2; done"}`)
	case strings.HasPrefix(intent, "mute"):
		return tool("shell", `{"command":"until [ -e enough ]; do sleep 0.2; done"}`)
	}
	return llmtest.Reply{Hang: true}
}

func TestWhatTalksMakesProgressAndWhatIsMuteIsOnlyTold(t *testing.T) {
	_, url := llmtest.NewAPI(t, still)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_HEARTBEAT_INTERVAL=1s", "RNIX_HEARTBEAT_STALL=2s")
	talk := s.Spawn(ipc.SpawnRequest{Intent: "talk", ProcSpec: types.ProcSpec{Model: "m"}})
	mute := s.Spawn(ipc.SpawnRequest{Intent: "mute", ProcSpec: types.ProcSpec{Model: "m"}})
	e := s.Await(mute.PID, event.Stalled, nil)
	if e.Name != "warn" || e.Dur < 2*time.Second || !strings.Contains(e.Text, "shell") {
		t.Errorf("%+v", e)
	}
	words := 0
	s.Await(talk.PID, event.LogLine, func(e *event.Event) bool { // it has talked for two of these limits
		words += strings.Count(e.Text, "word")
		return words > 20
	})
	until(t, "who talks is fine, and who is mute is not", func() bool { // on a busy machine who talks may be silent for that long too
		r, err := ipc.Call(t.Context(), s.Client, ipc.Heartbeat, ipc.HeartbeatRequest{})
		if err != nil || !r.Enabled || r.Policy != "warn" || r.Stall != 2*time.Second {
			t.Fatalf("%+v %v", r, err)
		}
		verdicts := map[types.PID]string{}
		for _, b := range r.Beats {
			verdicts[b.PID] = b.Verdict
		}
		return maps.Equal(verdicts, map[types.PID]string{talk.PID: "ok", mute.PID: "suspect"})
	})
	s.Write("enough", "")
	for _, pid := range []types.PID{talk.PID, mute.PID} {
		if w := s.Wait(pid); w.Exit.Code != types.ExitOK {
			t.Errorf("PID %d: %+v", pid, w)
		}
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil || len(l.Procs) != 2 {
		t.Errorf("%+v %v", l, err)
	}
}

func TestAStalledStepIsDoneAgainFromTheRecord(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if r.LastUser() == "parent" {
			if result, told := r.LastResult(); told {
				return llmtest.Reply{Text: "the child said " + result.Text}
			}
			return tool("spawn", `{"intent":"child"}`)
		}
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 1 {
			return llmtest.Reply{Hang: true}
		}
		return llmtest.Reply{Text: "here I am"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_HEARTBEAT_INTERVAL=1s", "RNIX_HEARTBEAT_STALL=2s", "RNIX_HEARTBEAT_POLICY=restart")
	parent := s.Spawn(ipc.SpawnRequest{Intent: "parent", ProcSpec: types.ProcSpec{Model: "m"}})
	child := s.Await(0, event.Spawned, func(e *event.Event) bool { return e.PPID == parent.PID })
	if e := s.Await(child.PID, event.Stalled, nil); e.Name != "restart" {
		t.Errorf("%+v", e)
	}
	again := s.Await(0, event.Spawned, func(e *event.Event) bool { return e.UUID == child.UUID && e.PID != child.PID })
	s.Await(again.PID, event.Exited, nil)
	until(t, "the end of the parent", func() bool {
		p, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: parent.UUID.String()})
		return err == nil && p.State == "dead" && p.Exit != nil && p.Exit.Code == types.ExitOK && strings.Contains(p.Result, "here I am")
	})
	if n := histories(t, s); n != 2 {
		t.Errorf("%d histories", n)
	}
}

func TestAStalledChildOfASupervisorIsRestartedInPlace(t *testing.T) {
	var mu sync.Mutex
	asked := 0
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		mu.Lock()
		defer mu.Unlock()
		if asked++; asked == 1 {
			return llmtest.Reply{Hang: true}
		}
		return llmtest.Reply{Text: "here I am"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_HEARTBEAT_INTERVAL=1s", "RNIX_HEARTBEAT_STALL=2s", "RNIX_HEARTBEAT_POLICY=restart")
	supervise(t, s, "supervisors: [{name: top, children: [{name: a, intent: wait, model: m, restart: transient}]}]")
	a := states(t, s, "top", "a running").Children[0]
	s.Await(a.PID, event.Stalled, nil)
	if c := states(t, s, "top", "a down").Children[0]; c.UUID != a.UUID || c.Restarts != 0 || c.Last == nil || c.Last.Code != types.ExitOK {
		t.Errorf("%+v", c)
	}
}
