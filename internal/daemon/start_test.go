package daemon_test

import (
	"os"
	"path/filepath"
	"testing"

	"rnix/internal/daemon"
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
		if err := os.WriteFile(path, []byte("\x00\x01 not a counter"), 0o600); err != nil {
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
	if _, err := s.TrySpawn(ipc.SpawnRequest{Intent: "hello", Provider: "torn"}); err == nil || types.CodeOf(err) == types.ErrInternal {
		t.Errorf("a provider whose script is gone: %v", err)
	}
}
