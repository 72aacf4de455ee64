package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/daemon"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// refusedStart runs a daemon inside the test over a directory, expecting that it does not come up.
func refusedStart(t *testing.T, dir string) error {
	t.Helper()
	env := map[string]string{"HOME": dir, "RNIX_DATA_DIR": filepath.Join(dir, "data"), "XDG_RUNTIME_DIR": dir}
	err := daemon.Run(t.Context(), daemon.Options{Lookup: func(name string) (string, bool) { v, ok := env[name]; return v, ok }})
	if err == nil {
		t.Fatal("the daemon came up")
	}
	return err
}

func TestStartThatFailsSaysWhyAndGivesEverythingBack(t *testing.T) {
	dir, err := os.MkdirTemp("", "rnix") // t.TempDir is too long for a socket
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	data := filepath.Join(dir, "data")
	if err := os.MkdirAll(data, 0o700); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"epoch", "pid"} {
		path := filepath.Join(data, name)
		if err := os.Mkdir(path, 0o700); err != nil { // damaged ones are derived
			t.Fatal(err)
		}
		for range 2 { // the second time shows that the locks and the socket were given back
			if err := refusedStart(t, dir); types.CodeOf(err) != types.ErrStorage {
				t.Errorf("%s: %v", name, err)
			}
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
	}
}

func TestRefusedModelIsAnErrorAndNotAMistakeOfTheDaemon(t *testing.T) {
	s := testenv.New(t)
	_, err := ipc.Call(t.Context(), s.Client, ipc.ReadPath, ipc.PathRequest{Path: "/dev/llm/offline/fallback/../..", Cwd: s.Work, Env: s.Env})
	if types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("a fallback that is not there: %v", err)
	}
	config := filepath.Join(s.Home, ".config", "rnix")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	torn := "version: \"1\"\nproviders:\n  - {name: torn, driver: replay, script: /nowhere/at/all.yaml}\n"
	if err := os.WriteFile(filepath.Join(config, "providers.yaml"), []byte(torn), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := s.TrySpawn(ipc.SpawnRequest{Intent: "hello", ProcSpec: types.ProcSpec{Provider: "torn"}}); err == nil || types.CodeOf(err) == types.ErrInternal {
		t.Errorf("a provider whose script is gone: %v", err)
	}
}

func TestBadSpawnIsRefusedAndNamed(t *testing.T) {
	s := testenv.New(t)
	minus := -5
	for want, req := range map[string]ipc.SpawnRequest{
		"intent has":     {Intent: strings.Repeat("x", 1<<20+1)},
		"intent is":      {Intent: " \n"},
		"a name has":     {Intent: "hi", ProcSpec: types.ProcSpec{Name: "\x1b]0;title\x07"}},
		"no blank":       {Intent: "hi", ProcSpec: types.ProcSpec{Name: "night "}},
		"number":         {Intent: "hi", ProcSpec: types.ProcSpec{Name: "17"}},
		"max_steps is":   {Intent: "hi", ProcSpec: types.ProcSpec{MaxSteps: &minus}},
		"context_budget": {Intent: "hi", ProcSpec: types.ProcSpec{ContextBudget: &minus}},
		"time limit":     {Intent: "hi", TimeoutMs: -1},
		"device path":    {Intent: "hi", ProcSpec: types.ProcSpec{DeniedDevices: []string{"shell"}}},
	} {
		_, err := s.TrySpawn(req)
		if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil || len(l.Procs) != 0 {
		t.Errorf("something was left: %+v %v", l, err)
	}
}

func TestKilledProcessWhoseRecordIsLostIsStillKnown(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	for name, hurt := range map[string]func(path string) error{
		"torn at its first line": func(path string) error { return os.WriteFile(path, []byte("{\"v\":1,\"kind\":\"mar\n{}\n"), 0o600) },
		"gone":                   os.Remove,
	} {
		t.Run(name, func(t *testing.T) {
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_DAEMON_AUTO_RESUME=false")
			p := s.Spawn(ipc.SpawnRequest{Intent: "wait for ever", ProcSpec: types.ProcSpec{Model: "fake", Name: "patience"}})
			s.Await(p.PID, event.StepStarted, nil)
			s.Kill()
			if err := hurt(filepath.Join(s.Data, "steps", p.UUID.String(), "steps.jsonl")); err != nil {
				t.Fatal(err)
			}
			s.Start()
			s.Settle()
			d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: "patience"})
			if err != nil || d.PID != p.PID || d.Intent != "wait for ever" || d.State != "suspended" || d.Damage == "" {
				t.Errorf("%+v %v", d, err)
			}
			if next := s.Spawn(ipc.SpawnRequest{Intent: "help", ProcSpec: types.ProcSpec{Provider: "offline"}}); next.PID <= p.PID {
				t.Errorf("PID %d after %d", next.PID, p.PID)
			}
		})
	}
}
