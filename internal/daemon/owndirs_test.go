package daemon_test

import (
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// toolRun lets an agent without a shell make calls in dir, all in one answer, and returns what it got for each.
func toolRun(t *testing.T, dir string, calls []llmtest.ToolCall) (s *testenv.System, run func() []llmtest.Result) {
	t.Helper()
	var mu sync.Mutex
	var got []llmtest.Result
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if _, told := r.LastResult(); !told {
			return llmtest.Reply{ToolCalls: calls}
		}
		mu.Lock()
		defer mu.Unlock()
		got = nil
		for _, m := range r.Messages {
			got = append(got, m.Results...)
		}
		return llmtest.Reply{Text: "done"}
	})
	s = testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	return s, func() []llmtest.Result {
		p, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "look around", ProcSpec: types.ProcSpec{Model: "fake", DeniedDevices: []string{"/dev/shell"}}, Cwd: filepath.Join(s.Dir, dir), Env: s.Env})
		if err != nil {
			t.Fatal(err)
		}
		if w := s.Wait(p.PID); w.Result != "done" {
			t.Fatalf("%+v", w)
		}
		mu.Lock()
		defer mu.Unlock()
		if len(got) != len(calls) {
			t.Fatalf("%d results of %d calls", len(got), len(calls))
		}
		return got
	}
}

// An agent whose workspace holds everything of Rnix, as with `-C $HOME`, reaches nothing of that.
func TestAgentsReachNothingOfRnixItself(t *testing.T) { // T15
	const no = "agents may not reach"
	var calls []llmtest.ToolCall
	var want []string
	add := func(wanted, name, input string) {
		want = append(want, wanted)
		calls = append(calls, llmtest.ToolCall{ID: "c" + strings.Repeat("i", len(calls)), Name: name, Input: input})
	}
	conf := "home/.config/rnix/"
	add(no, "write_file", `{"path":"`+conf+`init.yaml","content":"supervisors: []"}`)
	add(no, "write_file", `{"path":"home/.config/../.config/rnix/agents/a/agent.yaml","content":"name: a"}`)
	add(no, "read_file", `{"path":"`+conf+`secret.yaml"}`)
	add(no, "edit_file", `{"path":"`+conf+`secret.yaml","old":"token","new":"x"}`)
	add(no, "make_dir", `{"path":"`+conf+`skills"}`)
	add(no, "delete", `{"path":"`+conf+`secret.yaml"}`)
	add(no, "move", `{"from":"`+conf+`secret.yaml","to":"mine"}`)
	add(no, "move", `{"from":"work","to":"`+conf+`skills"}`)
	add(no, "read_file", `{"path":"link/secret.yaml"}`)
	add(no, "write_file", `{"path":"link/init.yaml","content":"x"}`)
	add(no, "write_file", `{"path":"dotfiles/policy.yaml","content":"x"}`)
	add(no, "delete", `{"path":"home","recursive":true}`)
	add(no, "delete", `{"path":"home/.config","recursive":true}`)
	add(no, "move", `{"from":"home/.config","to":"old"}`)
	add(no, "move", `{"from":"data","to":"old"}`)
	add(no, "move", `{"from":"work","to":"home/.rnix"}`)
	add(no, "delete", `{"path":"rnix","recursive":true}`)
	add(no, "list_files", `{"path":"data"}`)
	add(no, "list_files", `{"path":"data/steps"}`)
	add(no, "glob", `{"pattern":"*","path":"data"}`)
	add(no, "grep", `{"pattern":"x","path":"rnix"}`)
	add("left out, because it belongs to Rnix itself", "list_files", `{"all":true,"depth":4}`)
	add("left out, because it belongs to Rnix itself", "glob", `{"pattern":"**","all":true}`)
	add("left out, because it belongs to Rnix itself", "grep", `{"pattern":"not to be found","all":true}`)
	add("created", "write_file", `{"path":"home/.config/other/rnix.yaml","content":"free"}`)
	add("free", "read_file", `{"path":"work/free.txt"}`)
	s, run := toolRun(t, "", calls)
	for name, text := range map[string]string{"../" + conf + "secret.yaml": "token: t0p", "free.txt": "free\n", "../dotfiles/policy.yaml": "strict: true\n"} {
		s.Write(name, text)
	}
	for to, name := range map[string]string{filepath.Join(s.Dir, conf): "link", filepath.Join(s.Dir, "dotfiles/policy.yaml"): conf + "policy.yaml"} {
		if err := os.Symlink(to, filepath.Join(s.Dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for i, r := range run() {
		if !strings.Contains(r.Text, want[i]) {
			t.Errorf("%s %s: %q, want %q", calls[i].Name, calls[i].Input, r.Text, want[i])
		}
		for _, ours := range []string{"t0p", "index.json", "daemon.log", ".sock"} {
			if strings.Contains(r.Text, ours) {
				t.Errorf("%s %s shows %q: %q", calls[i].Name, calls[i].Input, ours, r.Text)
			}
		}
	}
	if b, err := os.ReadFile(filepath.Join(s.Dir, conf, "secret.yaml")); err != nil || string(b) != "token: t0p" {
		t.Errorf("%q %v", b, err)
	}
}

// A workspace within the data directory is served only if it was made to be one.
func TestDataDirectoryIsNoWorkspace(t *testing.T) { // T15
	calls := []llmtest.ToolCall{{ID: "a", Name: "write_file", Input: `{"path":"x","content":"x"}`}, {ID: "b", Name: "list_files", Input: `{}`}, {ID: "c", Name: "read_file", Input: `{"path":"../log/daemon.log"}`}}
	for dir, want := range map[string]string{
		"data/steps": "agents may not reach", "data/worktrees": "agents may not reach", "data/worktrees/u": "agents may not reach", "data": "agents may not reach",
		"data/worktrees/u/tree": "x", "data/workspaces/u": "x",
	} {
		t.Run(strings.ReplaceAll(dir, "/", "_"), func(t *testing.T) {
			s, run := toolRun(t, dir, calls)
			if err := os.MkdirAll(filepath.Join(s.Dir, dir), 0o700); err != nil {
				t.Fatal(err)
			}
			got := run()
			if !strings.Contains(got[0].Text, want) || !strings.Contains(got[1].Text, want) || !got[2].IsError {
				t.Errorf("%+v, want %q", got, want)
			}
		})
	}
}
