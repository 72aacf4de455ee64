package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// A fork of a parent in the middle of starting a child is told of it, has no part in it, and starts one of its own: also if the daemon breaks it
// off in its first step.
func TestForkHasNoneOfTheChildrenOfItsOriginAlsoAfterACrash(t *testing.T) {
	var stop atomic.Bool
	s, p, kid := led(t, &stop, "RNIX_DAEMON_AUTO_RESUME=false")
	f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, Fork: true, Cwd: s.Work})
	if err != nil {
		t.Fatal(err)
	}
	s.Await(0, event.Spawned, func(e *event.Event) bool { return e.PPID == f.PID && e.UUID != kid.UUID })
	s.Kill()
	cutBehind(t, s, f.UUID, `"name":"input"`)
	s.Start()
	s.Settle()
	stop.Store(true)
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: f.UUID.String(), Env: s.Env})
	if err != nil || len(r.Woken) != 0 {
		t.Errorf("%+v %v", r, err)
	}
	if w := s.Wait(r.PID); w.Suspended || w.Result != "the kid said: kid done" {
		t.Errorf("%+v", w)
	}
	if d := detail(t, s, kid.UUID.String()); d.State != "suspended" {
		t.Errorf("the child of the origin is %s", d.State)
	}
	told, err := os.ReadFile(filepath.Join(step.Dir(s.Data, f.UUID), step.StepsFile))
	if err != nil || !strings.Contains(string(told), "which had not ended. It had called:") || !strings.Contains(string(told), `- spawn {\"intent\":\"kid`) {
		t.Errorf("%v: %s", err, told)
	}
}

// A fork of a parent is told which children in the background are not its own, and its wait says so too: at once, by
// their PIDs, after a crash, and in a fork of the fork.
func TestForkOfAParentIsToldThatBackgroundChildrenAreNotItsOwn(t *testing.T) {
	var waits atomic.Int64 // the PID that a fork waits for; 0 = all
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		last, told := r.LastResult()
		switch {
		case r.LastUser() == "child":
			return llmtest.Reply{Hang: true}
		case r.LastUser() == "lead" && !told:
			return tool("spawn", `{"intent":"child","name":"kid","background":true}`)
		case r.LastUser() == "lead":
			return llmtest.Reply{Hang: true}
		case strings.Contains(last.Text, "copy of"):
			return llmtest.Reply{Text: "told: " + r.LastUser() + " | " + last.Text}
		}
		if pid := waits.Load(); pid != 0 {
			return tool("wait", fmt.Sprintf(`{"pids":[%d]}`, pid))
		}
		return tool("wait", `{}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake"}})
	kid := s.Await(0, event.Spawned, func(e *event.Event) bool { return e.PPID == p.PID })
	s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 2 })
	named := fmt.Sprintf("PID %d (kid)", kid.PID)
	fork := func(of types.UUID, from *int) (types.UUID, string) {
		t.Helper()
		f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: of.String(), Env: s.Env, Fork: true, FromStep: from, Cwd: s.Work})
		if err != nil {
			t.Fatal(err)
		}
		return f.UUID, s.Wait(f.PID).Result
	}
	for name, want := range map[string]string{"all": "no child of yours runs", "by its PID": "it is no child of yours"} {
		if waits.Store(0); name != "all" {
			waits.Store(int64(kid.PID))
		}
		id, got := fork(p.UUID, new(1))
		if !strings.Contains(got, want) || !strings.Contains(got, named) || !strings.Contains(got, "Start another one") {
			t.Errorf("waits for %s: the fork says %q", name, got)
		}
		if _, got = fork(id, new(1)); !strings.Contains(got, want) || !strings.Contains(got, named) {
			t.Errorf("waits for %s: the fork of the fork says %q", name, got)
		}
	}
	waits.Store(0)
	s.Kill()
	s.Start()
	s.Settle()
	if _, got := fork(p.UUID, nil); !strings.Contains(got, "(kid)") {
		t.Errorf("after a crash the fork says %q", got)
	}
}
