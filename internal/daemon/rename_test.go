package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// renames gives a process another name.
func renames(t *testing.T, s *testenv.System, id types.UUID, name string) {
	t.Helper()
	if r, err := ipc.Call(t.Context(), s.Client, ipc.Rename, ipc.RenameRequest{Target: id.String(), Name: name}); err != nil || r.UUID != id || r.Name != name {
		t.Fatalf("%+v %v", r, err)
	}
}

// finds checks that a name, and no other, finds a process, and that lists show it.
func finds(t *testing.T, s *testenv.System, id types.UUID, name string, not ...string) {
	t.Helper()
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: name})
	if err != nil || d.UUID != id || d.Name != name {
		t.Errorf("%q is %s %q, %v; want %s", name, d.UUID, d.Name, err, id)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	for _, p := range l.Procs {
		if p.UUID == id && p.Name != name {
			t.Errorf("the list says %q, want %q", p.Name, name)
		}
	}
	if err != nil {
		t.Error(err)
	}
	for _, was := range not {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: was}); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("%q still finds a process: %v", was, err)
		}
	}
}

// TestANewNameIsThereAfterEveryKill says that what rename has answered holds when the daemon is killed, restarted, and has lost all but the
// records: of a process that runs, is paused, is suspended, and has ended.
func TestANewNameIsThereAfterEveryKill(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if strings.Contains(r.Messages[0].Text, "end") {
			return llmtest.Reply{Text: "done"}
		}
		return llmtest.Reply{Hang: true}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	runs := s.Spawn(ipc.SpawnRequest{Intent: "run", ProcSpec: types.ProcSpec{Name: "runs", Model: "fake"}})
	held := s.Spawn(ipc.SpawnRequest{Intent: "hold", ProcSpec: types.ProcSpec{Name: "held", Model: "fake"}})
	over := s.Spawn(ipc.SpawnRequest{Intent: "end", ProcSpec: types.ProcSpec{Name: "over", Model: "fake"}})
	s.Await(runs.PID, event.StepStarted, nil)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: "over"}); err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: "held", Signal: types.SIGPAUSE}); err != nil {
		t.Fatal(err)
	}
	was := []string{"runs", "held", "over"}
	all := []types.UUID{runs.UUID, held.UUID, over.UUID}
	for round, again := range []func(){
		func() { s.Kill(); s.Start() },
		func() { s.Stop(); s.Start() },
		func() { s.Kill(); forget(t, s, all); s.Start() },
		func() { s.Stop(); forget(t, s, all); s.Start() },
	} {
		var names []string
		for i, id := range all {
			names = append(names, fmt.Sprintf("%d of round %d", i, round))
			renames(t, s, id, names[i])
			finds(t, s, id, names[i], was[i])
		}
		again()
		s.Settle()
		for i, id := range all {
			finds(t, s, id, names[i], was[i])
		}
		was = names
	}
	for _, id := range all {
		renames(t, s, id, "")
	}
	s.Kill()
	s.Start()
	s.Settle()
	for _, name := range was {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: name}); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("%q still finds a process: %v", name, err)
		}
	}
}

// forget removes what can be made anew of the records.
func forget(t *testing.T, s *testenv.System, all []types.UUID) {
	t.Helper()
	index, err := filepath.Glob(filepath.Join(s.Data, "index*"))
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range all {
		index = append(index, filepath.Join(s.Data, "steps", id.String(), step.InfoFile))
	}
	for _, path := range index {
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
	}
}

// TestNamesGivenAtOnceAreOneOfThemEverywhere says that of several renames at once, while the process pauses, resumes and ends, one counts:
// in lists, on disk, and after a kill.
func TestNamesGivenAtOnceAreOneOfThemEverywhere(t *testing.T) {
	var end atomic.Bool
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply {
		if end.Load() {
			return llmtest.Reply{Text: "done"}
		}
		return tool("list_files", `{}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	steps := 0
	p := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Name: "zero", Model: "fake", MaxSteps: &steps}})
	s.Await(p.PID, event.StepEnded, nil)
	var many sync.WaitGroup
	for who := range 4 {
		many.Go(func() {
			for n := range 10 {
				name := fmt.Sprintf("%c%c", 'a'+who, 'a'+n)
				if _, err := ipc.Call(t.Context(), s.Client, ipc.Rename, ipc.RenameRequest{Target: p.UUID.String(), Name: name}); err != nil {
					t.Errorf("%s: %v", name, err)
				}
				if who == 0 && n == 4 {
					end.Store(true)
				}
			}
		})
	}
	many.Wait()
	end.Store(true)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()}); err != nil {
		t.Fatal(err)
	}
	d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: p.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	finds(t, s, p.UUID, d.Name, "zero")
	s.Kill()
	s.Start()
	s.Settle()
	finds(t, s, p.UUID, d.Name, "zero")
	s.Kill()
	forget(t, s, []types.UUID{p.UUID})
	s.Start()
	s.Settle()
	finds(t, s, p.UUID, d.Name, "zero")
}
