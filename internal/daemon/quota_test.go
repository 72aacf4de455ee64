package daemon_test

import (
	"encoding/json"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A quota that resets in hours suspends the process, with the time at which it goes on by itself, and
// then it does: also when the daemon was away meanwhile.
func TestQuotaSuspendsUntilItsTimeAndWakesByItself(t *testing.T) { // C-8
	var empty atomic.Bool
	empty.Store(true)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if empty.Load() {
			return llmtest.Reply{Status: 429, Text: "quota", Header: http.Header{"Retry-After": {"7200"}}}
		}
		return llmtest.Reply{Text: "done"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}})
	w := s.Wait(p.PID)
	if !w.Suspended || w.Exit.Code != types.ExitBudget {
		t.Fatalf("%+v", w)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{})
	if err != nil || len(l.Procs) != 1 || l.Procs[0].State != "suspended" || !strings.HasPrefix(l.Procs[0].Wait, "rate limit") {
		t.Fatalf("%+v %v", l, err)
	}
	if left := time.Until(l.Procs[0].WaitUntil); left < 119*time.Minute || left > 121*time.Minute {
		t.Errorf("it is woken in %v", left)
	}
	s.Stop()
	empty.Store(false)
	past(t, filepath.Join(s.Data, "steps", p.UUID.String(), step.InfoFile))
	if err := os.Remove(filepath.Join(s.Data, step.IndexFile)); err != nil {
		t.Fatal(err)
	}
	s.Start()
	until(t, "it has gone on", func() bool {
		d := detail(t, s, p.UUID.String())
		return d.State == "dead" || d.State == "zombie"
	})
	if d := detail(t, s, p.UUID.String()); d.Exit == nil || d.Exit.Code != 0 || d.Result != "done" {
		t.Errorf("%+v", d)
	}
}

// past puts the time at which a process is woken into the past.
func past(t *testing.T, path string) {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var info map[string]any
	if err := json.Unmarshal(b, &info); err != nil {
		t.Fatal(err)
	}
	info["wake_at"] = time.Now().Add(-time.Hour).Format(time.RFC3339Nano)
	if b, err = json.Marshal(info); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
}
