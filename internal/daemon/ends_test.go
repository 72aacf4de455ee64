package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/durable"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// led starts a leader whose kid has done its first step.
func led(t *testing.T, stop *atomic.Bool, env ...string) (s *testenv.System, p ipc.SpawnResponse, kid event.Event) {
	t.Helper()
	_, url := llmtest.NewAPI(t, family(stop))
	s = testenv.New(t, append(env, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)...)
	p = s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake"}})
	kid = s.Await(0, event.Spawned, func(e *event.Event) bool { return e.PPID == p.PID })
	s.Await(kid.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 2 })
	return s, p, kid
}

// heardKid waits until the leader has ended with what its kid said.
func heardKid(t *testing.T, s *testenv.System, p ipc.SpawnResponse) {
	t.Helper()
	until(t, "the leader has ended", func() bool { d := detail(t, s, p.UUID.String()); return d.State == "dead" && d.Exit != nil })
	if d := detail(t, s, p.UUID.String()); d.Exit.Code != 0 || d.Result != "the kid said: kid done" {
		t.Errorf("%s %+v %q", d.State, d.Exit, d.Result)
	}
}

// A paused child that goes on with something new to do goes on for its parent too.
func TestResumeOfAPausedChildWithInputTakesItsParentAlong(t *testing.T) {
	var stop atomic.Bool
	s, p, kid := led(t, &stop)
	signal(t, s, kid.PID, types.SIGPAUSE)
	stop.Store(true)
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: kid.PID.String(), Env: s.Env, NewInput: "hurry"})
	if err != nil || len(r.Woken) != 1 {
		t.Errorf("%+v %v", r, err)
	}
	heardKid(t, s, p)
}

// A parent that was suspended because its child was goes on when the child has ended, whoever let that
// go on, and also when the daemon ends between the two.
func TestSuspendedParentGoesOnWhenItsChildHasEnded(t *testing.T) {
	var stop atomic.Bool
	s, p, kid := led(t, &stop)
	s.Kill()
	parked(t, s, p.UUID, kid.UUID)
	stop.Store(true)
	s.Start()
	heardKid(t, s, p)
}

// parked writes into the history of a parent that it waits for its child, while no daemon runs.
func parked(t *testing.T, s *testenv.System, id, kid types.UUID) {
	t.Helper()
	j, err := store.Open(durable.OS, s.Data, step.Synced)
	if err != nil {
		t.Fatal(err)
	}
	defer j.Close()
	lease, err := j.Acquire(t.Context(), id, "test")
	if err != nil {
		t.Fatal(err)
	}
	w := step.NewWriter(j, id, lease)
	exit := types.ExitStatus{Code: types.ExitBudget, Reason: "waits"}
	if err := w.Marker(&step.Marker{Name: step.MarkerSuspended, Text: "child " + kid.String(), Exit: &exit}); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	h, err := step.ReadHistory(t.Context(), j, id)
	if err != nil {
		t.Fatal(err)
	}
	info := h.Info()
	if err := j.Index().Save(&info); err != nil {
		t.Fatal(err)
	}
}

// A child that was archived while its parent waits for it is not started a second time.
func TestArchivedChildIsNotStartedAgain(t *testing.T) {
	var stop atomic.Bool
	s, p, kid := led(t, &stop, "RNIX_DAEMON_AUTO_RESUME=false")
	s.Kill()
	s.Start()
	s.Settle()
	stop.Store(true)
	r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: kid.UUID.String(), Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	s.Wait(r.PID)
	heardKid(t, s, p)
	s.Stop()
	// The end of the leader is cut off again: behind the intent of its call.
	cutBehind(t, s, p.UUID, `"kind":"intent"`)
	s.Start()
	s.Settle()
	age(t, s, kid.UUID)
	g := collect(t, s, ipc.GCRequest{})
	if len(g.Archived) != 1 || g.Archived[0].UUID != kid.UUID {
		t.Fatalf("%+v", g)
	}
	if r, err = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	if w := s.Wait(r.PID); !w.Suspended || !strings.Contains(detail(t, s, p.UUID.String()).Wait, "rnix unarchive") {
		t.Errorf("%+v, %q", w, detail(t, s, p.UUID.String()).Wait)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Unarchive, ipc.UnarchiveRequest{Target: kid.UUID.String()}); err != nil {
		t.Fatal(err)
	}
	if r, err = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	heardKid(t, s, p)
}

// cutBehind takes everything from a history that stands behind the last record with a word in it, as a crash
// would, and all that is made of it.
func cutBehind(t *testing.T, s *testenv.System, id types.UUID, word string) {
	t.Helper()
	path := filepath.Join(step.Dir(s.Data, id), step.StepsFile)
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	at := strings.LastIndex(string(b), word)
	end := at + strings.IndexByte(string(b[at:]), '\n') + 1
	if err := os.WriteFile(path, b[:end], 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{step.CheckpointFile, step.InfoFile, "checkpoint.prev.json"} {
		_ = os.Remove(filepath.Join(filepath.Dir(path), name))
	}
	_ = os.Remove(filepath.Join(s.Data, step.IndexFile))
}
