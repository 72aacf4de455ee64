package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// The daemon is killed while it writes: the whole lines are there at the next start, and what was cut
// off is told.
func TestTornRecordIsMendedAndToldAtTheNextStart(t *testing.T) {
	const done = 3
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) > 2*done {
			return llmtest.Reply{Hang: true}
		}
		return tool("list_files", `{}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
	p := s.Spawn(ipc.SpawnRequest{Intent: "look", ProcSpec: types.ProcSpec{Model: "fake"}})
	s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == done+1 })
	s.Kill()
	path := filepath.Join(s.Data, "steps", p.UUID.String(), step.StepsFile)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		t.Fatal(err)
	}
	const half = `{"v":1,"kind":"message","seq":99,"message":{"role":"assistant","content":"I was ab`
	if _, err := f.WriteString(half); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
	s.Start()
	s.Settle()
	st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || !strings.Contains(strings.Join(st.Recovered, "\n"), "were cut off") {
		t.Errorf("the start told %q, %v", st.Recovered, err)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: p.UUID.String()})
	if err != nil || len(l.Steps) != done || l.Damage != "" {
		t.Errorf("%d steps, %q, %v", len(l.Steps), l.Damage, err)
	}
	if b, err := os.ReadFile(path); err != nil || strings.Contains(string(b), "I was ab") || !strings.HasSuffix(string(b), "\n") {
		t.Errorf("the torn line is still there: %v", err)
	}
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
	if err != nil || d.State != "suspended" || len(d.Interrupted) != 0 {
		t.Errorf("%+v %v", d, err)
	}
}
