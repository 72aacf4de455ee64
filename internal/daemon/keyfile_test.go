package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// With its key in a file an agent works on after a reboot: the next daemon has no key in its environment, and no client brings one. The key is in no
// record, and not in the environment of a command.
func TestAnAgentWhoseKeyIsInAFileWorksOnAfterAReboot(t *testing.T) { // N3
	const key = "sk-canary-0123456789abcdef"
	var asked atomic.Int64
	waits := make(chan struct{}, 8)
	api, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if result, told := r.LastResult(); told {
			return llmtest.Reply{Text: "it says " + result.Text}
		}
		if asked.Add(1) == 1 {
			waits <- struct{}{}
			return llmtest.Reply{Text: "wait", Hang: true}
		}
		return tool("shell", `{"command":"env"}`)
	})
	api.Require(key)
	s := testenv.New(t, "ANTHROPIC_BASE_URL="+url)
	file := filepath.Join(s.Home, "key")
	if err := os.WriteFile(file, []byte(key+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	configure(t, s, "providers.yaml", "providers:\n  - {name: anthropic, api_key_file: "+file+"}\n")
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
	<-waits
	s.Kill()
	s.Start()
	w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()})
	if err != nil {
		t.Fatal(err)
	}
	if w.Exit.Code != 0 || !strings.HasPrefix(w.Result, "it says ") || strings.Contains(w.Result, "canary") {
		t.Errorf("it ended with %+v: %s", w.Exit, w.Result)
	}
	s.Stop()
	if err := filepath.WalkDir(s.Data, func(path string, d os.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		b, err := os.ReadFile(path)
		if strings.Contains(string(b), key) {
			t.Errorf("%s has the key", path)
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}
