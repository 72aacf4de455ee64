package daemon_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// keyTest is a daemon whose model wants the key "good", and hangs until it is let go on.
func keyTest(t *testing.T, provider string, environ ...string) (s *testenv.System, free *atomic.Bool, keys *atomic.Value) {
	t.Helper()
	free, keys = new(atomic.Bool), new(atomic.Value)
	_, api := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if key := r.Header.Get("X-Api-Key"); key == "stale" {
			return llmtest.Reply{Status: 401, Text: "invalid x-api-key"}
		} else {
			keys.Store(key)
		}
		if !free.Load() {
			return llmtest.Reply{Hang: true}
		}
		return llmtest.Reply{Text: "done"}
	})
	s = testenv.New(t, append([]string{"ANTHROPIC_BASE_URL=" + api}, environ...)...)
	write(t, filepath.Join(s.Home, ".config", "rnix", "providers.yaml"), strings.ReplaceAll(provider, "API", api))
	return s, free, keys
}

// procBy waits until a process is as wanted.
func procBy(t *testing.T, s *testenv.System, id types.UUID, ok func(ipc.Proc) bool) ipc.Proc {
	t.Helper()
	var p ipc.Proc
	until(t, "the process is as wanted", func() bool {
		r, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
		if err != nil {
			t.Fatal(err)
		}
		if i := slices.IndexFunc(r.Procs, func(p ipc.Proc) bool { return p.UUID == id }); i >= 0 {
			p = r.Procs[i]
		}
		return p.UUID == id && ok(p)
	})
	return p
}

func waitsForKey(p ipc.Proc) bool { return p.State == "suspended" && p.Why() == types.SuspendKey }
func hasEnded(p ipc.Proc) bool    { return p.Exit != nil && p.Exit.Code == 0 && p.State != "suspended" }

func TestAProcessWhoseKeyIsGoneAfterARestartWaitsForItAndGoesOnWithIt(t *testing.T) {
	s, free, keys := keyTest(t, "providers:\n  - {name: anthropic, driver: anthropic, base_url: API, api_key_env: MY_KEY}\n", "MY_KEY=good")
	r := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Provider: "anthropic", Model: "fake"}})
	until(t, "it asks", func() bool { return keys.Load() != nil })
	s.Kill()
	with := slices.Clone(s.Env)
	s.Env = slices.DeleteFunc(s.Env, func(kv string) bool { return strings.HasPrefix(kv, "MY_KEY=") })
	free.Store(true)
	s.Start()
	s.Settle()
	p := procBy(t, s, r.UUID, waitsForKey)
	if !strings.Contains(p.Wait, "MY_KEY is not set") {
		t.Errorf("it waits for %q", p.Wait)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: r.UUID.String(), Env: with}); err != nil {
		t.Fatal(err)
	}
	procBy(t, s, r.UUID, hasEnded)
	if keys.Load() != "good" {
		t.Errorf("it asked with %v", keys.Load())
	}
}

func TestAProcessWaitsForAKeyThatAFileOrACommandBringsLaterAndGoesOnByItself(t *testing.T) {
	for _, how := range []string{"file", "command"} {
		t.Run(how, func(t *testing.T) {
			conf := "providers:\n  - {name: anthropic, driver: anthropic, base_url: API, api_key_env: MY_KEY, api_key_file: ~/key}\n"
			if how == "command" {
				conf = "providers:\n  - {name: anthropic, driver: anthropic, base_url: API, api_key_env: MY_KEY, api_key_command: [sh, ~/key.sh], api_key_ttl: 1s}\n"
			}
			s, free, keys := keyTest(t, "")
			conf = strings.ReplaceAll(strings.ReplaceAll(conf, "~/key.sh", filepath.Join(s.Home, "key.sh")), "API", baseOf(s))
			write(t, filepath.Join(s.Home, ".config", "rnix", "providers.yaml"), conf)
			file, good := filepath.Join(s.Home, "key"), "good\n"
			if how == "command" {
				file, good = filepath.Join(s.Home, "key.sh"), "echo run >> "+filepath.Join(s.Home, "runs")+"\necho good\n"
			}
			write(t, file, good)
			if err := os.Chmod(file, 0o600); err != nil {
				t.Fatal(err)
			}
			if how == "command" {
				write(t, file, strings.ReplaceAll(good, "good", "stale"))
			}
			r := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Provider: "anthropic", Model: "fake"}})
			if how == "command" { // which prints a key that is refused, and then, to a person, a good one
				if p := procBy(t, s, r.UUID, waitsForKey); !strings.Contains(p.Wait, "the server refuses the key in MY_KEY") {
					t.Errorf("it waits for %q", p.Wait)
				}
				if b, err := os.ReadFile(filepath.Join(s.Home, "runs")); err != nil || string(b) != "run\nrun\n" {
					t.Errorf("the command was run %q, %v", b, err)
				}
				write(t, file, good)
				if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: r.UUID.String()}); err != nil {
					t.Fatal(err)
				}
			}
			until(t, "it asks", func() bool { return keys.Load() != nil })
			s.Kill()
			bad := ""
			if how == "command" {
				bad = "echo secret-in-its-words >&2; exit 3\n"
			}
			write(t, file, bad)
			free.Store(true)
			s.Start()
			s.Settle()
			procBy(t, s, r.UUID, waitsForKey)
			for _, root := range []string{s.Data, s.Work} {
				if err := filepath.WalkDir(root, func(path string, d os.DirEntry, err error) error {
					if err == nil && d.Type().IsRegular() {
						if b, err := os.ReadFile(path); err == nil && strings.Contains(string(b), "secret-in-its-words") {
							t.Errorf("%s has what the command printed", path)
						}
					}
					return nil
				}); err != nil {
					t.Error(err)
				}
			}
			write(t, file, good)
			if err := os.Chmod(file, 0o600); err != nil {
				t.Fatal(err)
			}
			procBy(t, s, r.UUID, hasEnded)
			if keys.Load() != "good" {
				t.Errorf("it asked with %v", keys.Load())
			}
		})
	}
}

// baseOf is where the API of keyTest is.
func baseOf(s *testenv.System) string {
	for _, kv := range s.Env {
		if v, ok := strings.CutPrefix(kv, "ANTHROPIC_BASE_URL="); ok {
			return v
		}
	}
	return ""
}
