package daemon_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// npm returns a file of the npm packages that the tests use, or skips the test.
func npm(t *testing.T, elem ...string) string {
	t.Helper()
	dir := os.Getenv("RNIX_TEST_NPM")
	if dir == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			t.Skip("needs npm packages: no cache directory")
		}
		dir = filepath.Join(cache, "rnix-test", "npm")
	}
	path := filepath.Join(append([]string{dir, "node_modules"}, elem...)...)
	if _, err := os.Stat(path); err != nil {
		t.Skipf("needs %s from npm", filepath.Join(elem...))
	}
	soak.Turn(t)
	return path
}

// action answers the way the claude CLI asks for it: one structured action.
func action(r llmtest.Request, json string) llmtest.Reply {
	for _, name := range r.Tools {
		if name == "StructuredOutput" {
			return tool(name, json)
		}
	}
	return llmtest.Reply{Text: json}
}

// The real claude CLI as the model, against a fake of the vendor's API: the agent reads, edits, runs
// the tests and completes, and every tool call is the kernel's.
func TestRealClaudeAsAModelMendsABug(t *testing.T) {
	claude := npm(t, ".bin", "claude")
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		last := r.LastUser()
		switch {
		case strings.Contains(last, "exit code 0"):
			return action(r, `{"action":"complete","result":"mended, the tests pass"}`)
		case strings.Contains(last, "+func Sum(a, b int) int { return a + b }"):
			return action(r, `{"action":"tool_call","tool":"shell","input":{"command":"go test ./..."}}`)
		case strings.Contains(last, "return a - b"):
			return action(r, `{"action":"tool_call","tool":"edit_file","input":{"path":"sum.go","old":"a - b","new":"a + b"}}`)
		}
		return action(r, `{"action":"tool_call","tool":"read_file","input":{"path":"sum.go"}}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=sk-ant-dummy", "ANTHROPIC_BASE_URL="+url, "PATH="+filepath.Dir(claude)+":"+os.Getenv("PATH"))
	bug(s)
	w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "mend the sum", ProcSpec: types.ProcSpec{Provider: "claude"}}).PID)
	if w.Exit.Code != 0 || w.Result != "mended, the tests pass" || !strings.Contains(s.Read("sum.go"), "a + b") {
		t.Fatalf("%+v", w)
	}
	if w.TokensUsed == 0 || w.Steps != 4 {
		t.Errorf("%d tokens, %d steps", w.TokensUsed, w.Steps)
	}
}

// Real MCP servers are mounted for a process, used by its model, confined, and gone with it.
func TestRealMCPServersAreMountedUsedAndGone(t *testing.T) {
	for level, refused := range map[string]string{"off": "", "bwrap": "EROFS", "landlock": "EACCES"} {
		t.Run(level, func(t *testing.T) { realServers(t, level, refused) })
	}
}

// realServers uses real servers at a level of the sandbox. One of them may write if refused is empty, else it is told that.
func realServers(t *testing.T, level, refused string) {
	everything := npm(t, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	files := npm(t, "@modelcontextprotocol", "server-filesystem", "dist", "index.js")
	if _, err := exec.LookPath("bwrap"); err != nil && level == "bwrap" {
		t.Skip("needs bwrap")
	}
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		res, ok := r.LastResult()
		switch {
		case !ok:
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{
				{ID: "a", Name: "mcp__everything__echo", Input: `{"message":"over there"}`},
				{ID: "b", Name: "mcp__files__write_file", Input: `{"path":"made.txt","content":"x"}`},
				{ID: "c", Name: "mcp__files__list_directory", Input: `{"path":"."}`},
			}}
		default:
			return llmtest.Reply{Text: "last: " + res.Text}
		}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url, "RNIX_SANDBOX_LEVEL="+level)
	s.Write("hello.txt", "hi")
	config := filepath.Join(s.Home, ".config", "rnix")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	yaml := "servers:\n  everything:\n    command: node\n    spawn_timeout: 1m\n    args: [" + everything + "]\n  files:\n    command: node\n    spawn_timeout: 1m\n    args: [" + files + ", .]\n    sandbox: {net: none}\n"
	if err := os.WriteFile(filepath.Join(config, "mcp.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	p := s.Spawn(ipc.SpawnRequest{Intent: "use them", ProcSpec: types.ProcSpec{Model: "fake"}, MCP: []string{"everything", "files"}})
	w := s.Wait(p.PID)
	if w.Exit.Code != 0 || !strings.Contains(w.Result, "hello.txt") {
		t.Fatalf("%+v", w)
	}
	steps, err := ipc.Call(t.Context(), s.Client, ipc.ListSteps, ipc.StepsRequest{Target: p.UUID.String()})
	if err != nil || !strings.Contains(steps.Steps[0].ToolCalls[0].Result, "over there") {
		t.Errorf("%+v %v", steps.Steps, err)
	}
	if _, err := os.Stat(filepath.Join(s.Work, "made.txt")); (err == nil) != (refused == "") || refused != "" && !strings.Contains(steps.Steps[0].ToolCalls[1].Error+steps.Steps[0].ToolCalls[1].Result, refused) {
		t.Errorf("a server writes the work directory: %v, %+v", err, steps.Steps[0].ToolCalls[1])
	}
	if left := s.Survivors(); len(left) > 0 {
		t.Errorf("servers are left: %v", left)
	}
	l, err := ipc.Call(t.Context(), s.Client, ipc.MCPList, ipc.ProjectRequest{Cwd: s.Work, Env: s.Env})
	if err != nil || len(l.Servers) != 2 || len(l.Mounts) != 0 {
		t.Errorf("%+v %v", l, err)
	}
	test, err := ipc.Call(t.Context(), s.Client, ipc.MCPTest, ipc.MCPTestRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}, Server: "everything"})
	if err != nil || !strings.Contains(string(test.Tools), "echo") {
		t.Errorf("%s %v", test.Tools, err)
	}
}

func TestOneBadServerOfSeveralLeavesNothing(t *testing.T) {
	everything := npm(t, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	s := testenv.New(t)
	config := filepath.Join(s.Home, ".config", "rnix")
	if err := os.MkdirAll(config, 0o700); err != nil {
		t.Fatal(err)
	}
	yaml := "servers:\n  good:\n    command: node\n    spawn_timeout: 1m\n    args: [" + everything + "]\n  bad:\n    command: sh\n    spawn_timeout: 1m\n    args: [-c, 'echo no such key >&2; exit 3']\n"
	if err := os.WriteFile(filepath.Join(config, "mcp.yaml"), []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := s.TrySpawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Provider: "offline"}, MCP: []string{"good", "bad"}})
	if err == nil || !strings.Contains(err.Error(), "bad") || !strings.Contains(err.Error(), "no such key") {
		t.Errorf("%v", err)
	}
	status := func() ipc.Status {
		st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
		if err != nil {
			t.Fatal(err)
		}
		return st
	}
	if st := status(); st.Running != 0 || st.Stored != 0 {
		t.Errorf("%+v", st)
	}
	until(t, "no server is left", func() bool { return status().Children == 0 })
	if p := s.Spawn(ipc.SpawnRequest{Intent: "help", ProcSpec: types.ProcSpec{Provider: "offline"}}); s.Await(p.PID, event.Exited, nil).Exit.Code != 0 {
		t.Error("the next spawn does not work")
	}
}

// A process that goes on has its MCP servers again, at new paths and under the same names.
func TestResumedProcessHasItsServersAgain(t *testing.T) {
	everything := npm(t, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	var hang atomic.Bool
	hang.Store(true)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		turns := r.Turns()
		res, _ := r.LastResult()
		switch {
		case turns == 0:
			return tool("mcp__everything__echo", `{"message":"first"}`)
		case hang.Load():
			return llmtest.Reply{Hang: true}
		case turns == 1:
			return tool("mcp__everything__echo", `{"message":"second"}`)
		}
		return llmtest.Reply{Text: "last: " + res.Text}
	})
	for _, allow := range [][]string{nil, {"/dev/fs", "/mnt/mcp"}} {
		hang.Store(true)
		s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
		config := filepath.Join(s.Home, ".config", "rnix")
		if err := os.MkdirAll(config, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(config, "mcp.yaml"), []byte("servers:\n  everything:\n    command: node\n    spawn_timeout: 1m\n    args: ["+everything+"]\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		p := s.Spawn(ipc.SpawnRequest{Intent: "use it", ProcSpec: types.ProcSpec{Model: "fake", AllowedDevices: allow}, MCP: []string{"everything"}})
		s.Await(p.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == 2 })
		before := detail(t, s, p.UUID.String())
		s.Kill()
		hang.Store(false)
		s.Start()
		s.Settle()
		after := detail(t, s, p.UUID.String())
		if len(after.MCPMounts) != 1 || after.MCPMounts[0] == before.MCPMounts[0] || !slices.Equal(slices.Sorted(slices.Values(after.Tools)), slices.Sorted(slices.Values(before.Tools))) { // a server may tell of its tools in another order
			t.Errorf("%v was mounted and %v is; tools %v and %v", before.MCPMounts, after.MCPMounts, before.Tools, after.Tools)
		}
		if len(after.AllowedDevices) != len(before.AllowedDevices) {
			t.Errorf("it was allowed %v and is %v", before.AllowedDevices, after.AllowedDevices)
		}
		if w := s.Wait(after.PID); w.Exit.Code != 0 || !strings.Contains(w.Result, "second") {
			t.Errorf("%+v", w)
		}
		if left := s.Survivors(); len(left) > 0 {
			t.Errorf("servers are left: %v", left)
		}
	}
}

// A project that was trusted is trusted as it was: what an agent has made of its servers since is not run.
func TestChangedServerOfATrustedProjectIsNotRunByAResume(t *testing.T) {
	everything := npm(t, "@modelcontextprotocol", "server-everything", "dist", "index.js")
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "done"} })
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Write(".rnix/mcp.yaml", "servers:\n  everything:\n    command: node\n    spawn_timeout: 1m\n    args: ["+everything+"]\n")
	p := s.Spawn(ipc.SpawnRequest{Intent: "use it", ProcSpec: types.ProcSpec{Model: "fake"}, MCP: []string{"everything"}, TrustProject: true})
	s.Wait(p.PID)
	resume := func(trust bool) error {
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: p.UUID.String(), Env: s.Env, NewInput: "more", TrustProject: trust})
		if err == nil {
			s.Wait(r.PID)
		}
		return err
	}
	if err := resume(false); err != nil {
		t.Fatalf("unchanged: %v", err)
	}
	s.Write(".rnix/mcp.yaml", "servers:\n  everything:\n    command: sh\n    args: [-c, 'touch "+filepath.Join(s.Dir, "ran")+"; exec node "+everything+"']\n")
	if err := resume(false); types.CodeOf(err) != types.ErrPermission || !strings.Contains(err.Error(), "--trust-project") {
		t.Errorf("changed: %v", err)
	}
	if _, err := os.Stat(filepath.Join(s.Dir, "ran")); err == nil {
		t.Error("the changed server was run")
	}
	if err := resume(true); err != nil {
		t.Errorf("trusted again: %v", err)
	}
}
