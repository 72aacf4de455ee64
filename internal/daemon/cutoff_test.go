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

// A command that a stop of the daemon cuts off is not answered as one that has failed: what becomes of it is decided
// when the process goes on, and then nobody takes it for done.
func TestACommandThatAStopCutsOffIsInDoubtWhenTheProcessGoesOn(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", `{"command":"echo up; sleep 60"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	model := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	rules := s.Spawn(ipc.SpawnRequest{Intent: "run `echo up; sleep 60`", ProcSpec: types.ProcSpec{Provider: "offline"}})
	up(s, model.PID)
	up(s, rules.PID)
	began := time.Now()
	s.Stop()
	s.Start()
	s.Settle()
	if d := detail(t, s, model.UUID.String()); d.State != "suspended" {
		t.Errorf("it is %s", d.State)
	}
	for _, id := range []types.UUID{model.UUID, rules.UUID} {
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), Env: s.Env})
		if err != nil || len(r.InDoubt) != 1 {
			t.Fatalf("%+v %v", r, err)
		}
		w := s.Wait(r.PID)
		if id == model.UUID && (w.Exit.Code != 0 || !strings.Contains(w.Result, "outcome is unknown")) {
			t.Errorf("%+v", w)
		}
		if id == rules.UUID && (w.Exit.Code != types.ExitError || !strings.Contains(w.Exit.Reason, "was cut off") || !strings.HasPrefix(w.Result, "# The command was cut off")) {
			t.Errorf("%+v", w)
		}
	}
	if took := time.Since(began); took > 50*time.Second {
		t.Errorf("it was waited for: %v", took)
	}
}
