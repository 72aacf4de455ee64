package daemon_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// idle is after how long without work the daemons of these tests end.
const idle = 1500 * time.Millisecond

// kept keeps the daemon from being idle until the returned function is called: a busy machine may need longer than that between
// two calls of a test.
func kept(t *testing.T, s *testenv.System) (release func()) {
	t.Helper()
	feed, err := ipc.Open(t.Context(), s.Client, ipc.Events, ipc.EventsRequest{Follow: true})
	if err != nil {
		t.Fatal(err)
	}
	return func() { _ = feed.Close() }
}

// Whatever was done, and although nobody is connected while it is done: the daemon stays until it is
// finished, and ends soon afterwards.
func TestIdleStopWorksAfterEachKindOfWork(t *testing.T) {
	slow := `{"command":"echo up; sleep 3"}` // longer than idle
	for name, work := range map[string]func(t *testing.T, s *testenv.System) (want string){
		"a call": func(t *testing.T, s *testenv.System) string {
			_, _ = ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
			return ""
		},
		"a detached process": func(t *testing.T, s *testenv.System) string {
			s.Spawn(ipc.SpawnRequest{Intent: slow, ProcSpec: types.ProcSpec{Model: "fake"}})
			return types.ReasonCompleted
		},
		"a client that left its stream": func(t *testing.T, s *testenv.System) string {
			p := s.Spawn(ipc.SpawnRequest{Intent: slow, ProcSpec: types.ProcSpec{Model: "fake"}})
			up(s, p.PID)
			return types.ReasonCompleted
		},
		"a client that vanished while it waited": func(t *testing.T, s *testenv.System) string {
			p := s.Spawn(ipc.SpawnRequest{Intent: slow, ProcSpec: types.ProcSpec{Model: "fake"}})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			defer cancel()
			_, _ = ipc.Call(ctx, s.Client, ipc.Wait, ipc.WaitRequest{Target: p.PID.String()})
			return types.ReasonCompleted
		},
		"a kill": func(t *testing.T, s *testenv.System) string {
			p := s.Spawn(ipc.SpawnRequest{Intent: `{"command":"echo up; sleep 3600"}`, ProcSpec: types.ProcSpec{Model: "fake"}})
			up(s, p.PID)
			signal(t, s, p.PID, types.SIGKILL)
			return "killed"
		},
		"a kill while paused": func(t *testing.T, s *testenv.System) string {
			p := s.Spawn(ipc.SpawnRequest{Intent: `{"command":"echo up; sleep 3600"}`, ProcSpec: types.ProcSpec{Model: "fake"}})
			up(s, p.PID)
			signal(t, s, p.PID, types.SIGPAUSE)
			signal(t, s, p.PID, types.SIGKILL)
			return types.ReasonCancelledPaused
		},
		"a spawn that failed": func(t *testing.T, s *testenv.System) string {
			if _, err := s.TrySpawn(ipc.SpawnRequest{Intent: "x", Agent: "nobody"}); err == nil {
				t.Error("an agent that does not exist was started")
			}
			return ""
		},
	} {
		t.Run(name, func(t *testing.T) {
			_, url := llmtest.NewAPI(t, runsIntent)
			s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, testenv.IdleEnv+"="+idle.String())
			release := kept(t, s)
			want := work(t, s)
			release()
			_ = s.Client.Close()
			if code, ended := s.Ended(time.Minute); !ended || code != 0 {
				t.Fatalf("ended %v, exit code %d", ended, code)
			}
			s.Env = slices.DeleteFunc(s.Env, func(kv string) bool { return strings.HasPrefix(kv, testenv.IdleEnv+"=") })
			s.Start()
			l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range l.Procs {
				if p.Exit == nil || p.Exit.Reason != want {
					t.Errorf("the daemon did not wait for its process: %+v", p)
				}
			}
			if want != "" && len(l.Procs) != 1 {
				t.Errorf("%d histories", len(l.Procs))
			}
		})
	}
}

// runsIntent is a model whose agents run their intent as the input of the shell, and finish.
func runsIntent(r llmtest.Request) llmtest.Reply {
	if _, told := r.LastResult(); told {
		return llmtest.Reply{Text: "done"}
	}
	return tool("shell", r.LastUser())
}

func TestPausedProcessKeepsTheDaemonUntilItHasEnded(t *testing.T) {
	_, url := llmtest.NewAPI(t, runsIntent)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, testenv.IdleEnv+"="+idle.String())
	release := kept(t, s)
	p := s.Spawn(ipc.SpawnRequest{Intent: `{"command":"echo up; until [ -e gate ]; do sleep 0.1; done"}`, ProcSpec: types.ProcSpec{Model: "fake"}})
	up(s, p.PID)
	signal(t, s, p.PID, types.SIGPAUSE)
	release()
	if _, ended := s.Ended(3 * idle); ended {
		t.Fatal("the daemon ended although a process was paused")
	}
	release = kept(t, s)
	s.Write("gate", "")
	signal(t, s, p.PID, types.SIGRESUME)
	if e := s.Await(p.PID, event.Exited, nil); e.Exit.Code != 0 {
		t.Errorf("after the pause: %+v", e.Exit)
	}
	release()
	if code, ended := s.Ended(time.Minute); !ended || code != 0 {
		t.Errorf("ended %v, exit code %d", ended, code)
	}
}

// The client's own setting counts, not the one that the daemon was started with.
func TestShellTimeoutOfTheClientCounts(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("shell", r.LastUser())
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: `{"command":"exec sleep 1000"}`, ProcSpec: types.ProcSpec{Model: "fake"}, Env: append(s.Env, "RNIX_SHELL_TIMEOUT=300ms")})
	if w := s.Wait(p.PID); w.Exit.Code != 0 || w.Result != "[timed out after 0.3 s; killed]\n" {
		t.Errorf("%+v", w)
	}
}

// A server that a person has mounted is in use until it is unmounted, although no process has it and no call is under way.
func TestMountOfAPersonKeepsTheDaemonUntilItIsUnmounted(t *testing.T) {
	s := testenv.New(t, testenv.IdleEnv+"="+idle.String())
	release := kept(t, s)
	s.Write("server.sh", `while IFS= read -r line; do
  id=$(printf '%s' "$line" | sed -n 's/.*"id":\("[^"]*"\|[0-9]*\).*/\1/p')
  case $line in
  *'"initialize"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"s","version":"1"}}}\n' "$id" ;;
  *'"tools/list"'*) printf '{"jsonrpc":"2.0","id":%s,"result":{"tools":[]}}\n' "$id" ;;
  esac
done
`)
	where := ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.MCPMountAt, ipc.MCPMountRequest{ProjectRequest: where, Path: "/mnt/mcp/own", Command: []string{"sh", "server.sh"}}); err != nil {
		t.Fatal(err)
	}
	release()
	if _, ended := s.Ended(3 * idle); ended {
		t.Fatal("the daemon ended although a server was mounted")
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.MCPUnmount, ipc.MCPUnmountRequest{Path: "/mnt/mcp/own"}); err != nil {
		t.Fatal(err)
	}
	_ = s.Client.Close()
	if code, ended := s.Ended(time.Minute); !ended || code != 0 {
		t.Fatalf("ended %v, exit code %d", ended, code)
	}
}
