package daemon_test

import (
	"bytes"
	"fmt"
	"hash/crc32"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"rnix/agent"
	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/permit"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// What would deny nothing is refused on every way on which it can be asked for.
func TestDenialsWithoutEffectAreRefused(t *testing.T) { // T4
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text}
		}
		return tool("spawn", `{"intent":"kid","deny":["/dev/fs/sub"]}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	for _, path := range []string{"/dev/fs/sub", "/dev/workspace/sub", "/dev/shell/..", "/sys/nonsense", "", "/dev/shell/", "dev/shell", "/mnt/mcp/x/y", "/proc/1/context"} {
		_, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake", DeniedDevices: []string{path}}, Cwd: s.Work, Env: s.Env})
		if types.CodeOf(err) != types.ErrInvalid || !strings.Contains(fmt.Sprint(err), fmt.Sprintf("cannot deny %q", path)) {
			t.Errorf("%q: %v", path, err)
		}
	}
	if w := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Model: "fake"}}).PID); !strings.Contains(w.Result, `cannot deny \"/dev/fs/sub\": rights end at the device`) && !strings.Contains(w.Result, `cannot deny "/dev/fs/sub": rights end at the device`) {
		t.Errorf("by an agent: %+v", w)
	}
	s.Write(".rnix/agents/part/agent.yaml", "name: part\ndevices:\n  - /dev/fs\n  - /dev/workspace/sub\n")
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, ipc.SpawnRequest{Intent: "x", Agent: "part", ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: s.Work, Env: s.Env}); types.CodeOf(err) != types.ErrInvalid ||
		!strings.Contains(fmt.Sprint(err), `agent.yaml:4:5: devices[1]`) {
		t.Errorf("agent.yaml: %v", err)
	}
	for name, up := range map[string]func() error{
		`compose.yaml:2:25: agents.a.deny[0]: cannot deny "/dev/fs/sub"`: func() error {
			_, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{File: "compose.yaml", Cwd: s.Work, Env: s.Env, Text: "agents:\n  a: {intent: x, deny: [/dev/fs/sub]}\n"})
			return err
		},
		`s.yaml:1:37: supervisors[0].deny[0]: cannot deny "/dev/fs/sub"`: func() error {
			_, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseUp, ipc.SuperviseRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}, File: "s.yaml",
				Source: "supervisors: [{name: keeper, deny: [/dev/fs/sub], children: [{name: c, intent: kid, model: fake}]}]\n"})
			return err
		},
	} {
		if err := up(); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(fmt.Sprint(err), name) {
			t.Errorf("%v, want %s", err, name)
		}
	}
}

// agent.Devices is what files are checked against, on a machine without a daemon too.
func TestFilesCanNameExactlyTheDevicesThatThereAre(t *testing.T) {
	s := testenv.New(t)
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListPath, ipc.PathRequest{Path: "/dev", Cwd: s.Work, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	there := []string{}
	for _, e := range l.Entries {
		if there = append(there, "/dev/"+e.Name); !slices.Contains(agent.Devices(), "/dev/"+e.Name) {
			t.Errorf("no file can name /dev/%s: add it to agent.Devices (agent/device.go)", e.Name)
		}
	}
	for _, d := range agent.Devices() {
		if strings.HasPrefix(d, "/dev/") && !slices.Contains(there, d) {
			t.Errorf("files can name %s, which is not there: see registerDevices", d)
		}
	}
}

// Rules about other names are doubted.
func TestRulesKnowTheToolsThatThereAre(t *testing.T) {
	var there []string
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		there = r.Tools
		return llmtest.Reply{Text: "done"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	configure(t, s, "config.yaml", "web: {search: {engine: searxng, url: 'http://127.0.0.1:1'}}\n")
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake"}})
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: p.UUID.String()}); err != nil {
		t.Fatal(err)
	}
	// About these, which only the process itself sees, nothing is decided.
	there = slices.DeleteFunc(there, func(name string) bool {
		return slices.Contains([]string{"complete", "plan", "replan", "specialize", "ps"}, name)
	})
	slices.Sort(there)
	if !slices.Equal(there, permit.Tools()) {
		t.Errorf("there are %q; permit.Tools (internal/permit/doubt.go) has %q", there, permit.Tools())
	}
}

// A tool of a server can be denied on its own, under the server's name in the configuration.
func TestDeniedToolOfAServerCannotBeCalled(t *testing.T) { // T4
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if res, told := r.LastResult(); told {
			return llmtest.Reply{Text: res.Text + " of " + strings.Join(r.Tools, " ")}
		}
		if r.Messages[0].Text == "hang" {
			return llmtest.Reply{Hang: true}
		}
		return tool("mcp__counts__set", `{"file":"ran"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	s.Write("counts.sh", counts)
	configure(t, s, "mcp.yaml", "servers:\n  counts:\n    command: sh\n    args: ["+filepath.Join(s.Work, "counts.sh")+"]\n")
	req := ipc.SpawnRequest{Intent: "set", ProcSpec: types.ProcSpec{Model: "fake"}, MCP: []string{"counts"}}
	if w := s.Wait(s.Spawn(req).PID); !strings.Contains(w.Result, "counted") {
		t.Fatalf("%+v", w)
	}
	req.DeniedDevices = []string{"/mnt/mcp/counts/tools/set"}
	if w := s.Wait(s.Spawn(req).PID); strings.Contains(w.Result, "counted") || strings.Contains(w.Result, "counts__set ") || !strings.Contains(w.Result, "mcp__counts__look") {
		t.Errorf("%+v", w)
	}
	req.Intent = "hang"
	p := s.Spawn(req)
	s.Await(p.PID, event.StepStarted, nil)
	for path, denied := range map[string]bool{"/tools/set": true, "/tools/set/": true, "/tools/look": false, "/tools": false} {
		_, err := ipc.Call(t.Context(), s.Client, ipc.ReadPath, ipc.PathRequest{Path: "/mnt/mcp/" + p.PID.String() + "-counts" + path, As: p.PID.String(), Cwd: s.Work, Env: s.Env})
		if (types.CodeOf(err) == types.ErrPermission) != denied {
			t.Errorf("%s: %v", path, err)
		}
	}
	signal(t, s, p.PID, types.SIGKILL)
	req.DeniedDevices = []string{"/mnt/mcp/counts/tools/sett"}
	req.Cwd, req.Env = s.Work, s.Env
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Spawn, req); types.CodeOf(err) != types.ErrInvalid || !strings.Contains(fmt.Sprint(err), "did you mean set?") {
		t.Errorf("a slip: %v", err)
	}
}

// asAnEarlierVersion puts a denial without effect, as an earlier version took it, into the histories of a daemon that does not
// run, in place of one of /dev/llm/nobody.
func asAnEarlierVersion(t *testing.T, s *testenv.System) {
	t.Helper()
	changed, seal := 0, regexp.MustCompile(`,"seal":"[^"]*"`) // an earlier version made none, and had no key
	if err := os.RemoveAll(filepath.Join(s.Home, ".config", "rnix", "rights")); err != nil {
		t.Fatal(err)
	}
	files, _ := filepath.Glob(filepath.Join(s.Data, "steps", "*", "*.jsonl"))
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var out []byte
		for line := range bytes.Lines(b) {
			body, _, sealed := bytes.Cut(line, []byte(`,"crc":"`))
			if now := seal.ReplaceAll(bytes.ReplaceAll(body, []byte("/dev/llm/nobody"), []byte("/dev/fs/private")), nil); sealed && !bytes.Equal(now, body) {
				changed++
				line = fmt.Appendf(now, ",\"crc\":\"%08x\"}\n", crc32.Checksum(now, crc32.MakeTable(crc32.Castagnoli)))
			}
			out = append(out, line...)
		}
		if err := os.WriteFile(file, out, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if changed == 0 {
		t.Fatal("no record was changed")
	}
	caches, _ := filepath.Glob(filepath.Join(s.Data, "steps", "*", "checkpoint*"))
	for _, file := range caches {
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
	}
}

// A history of an earlier version, which had taken a denial without effect, goes on, and says so.
func TestHistoryWithAVoidDenialGoesOn(t *testing.T) { // T4
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		if len(r.Messages) > 1 {
			return llmtest.Reply{Text: "went on"}
		}
		return llmtest.Reply{Text: "first"}
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := s.Spawn(ipc.SpawnRequest{Intent: "x", ProcSpec: types.ProcSpec{Model: "fake", DeniedDevices: []string{"/dev/shell", "/dev/llm/nobody"}}})
	s.Wait(p.PID)
	s.Stop()
	asAnEarlierVersion(t, s)
	s.Start()
	for _, fork := range []bool{true, false} {
		req := ipc.ResumeRequest{Target: p.UUID.String(), NewInput: "go on", Fork: fork, Env: s.Env}
		if fork {
			req.Cwd = s.Work
		}
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, req)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(strings.Join(r.Warnings, "\n"), `a denial that has no effect: cannot deny "/dev/fs/private"`) {
			t.Errorf("fork %v: %q", fork, r.Warnings)
		}
		if d := detail(t, s, r.UUID.String()); !slices.Contains(d.DeniedDevices, "/dev/fs/private") || !slices.Contains(d.DeniedDevices, "/dev/shell") {
			t.Errorf("fork %v: %v", fork, d.DeniedDevices)
		}
		if w := s.Wait(r.PID); w.Result != "went on" {
			t.Errorf("fork %v: %+v", fork, w)
		}
	}
}

// The children of a supervisor of an earlier version are started again, although they would be refused today.
func TestSupervisorWithAVoidDenialStartsItsChildren(t *testing.T) { // T4
	_, url := llmtest.NewAPI(t, func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseUp, ipc.SuperviseRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work, Env: s.Env}, File: "s.yaml",
		Source: "supervisors: [{name: keeper, children: [{name: c, intent: kid, model: fake, deny: [/dev/llm/nobody]}]}]\n"}); err != nil {
		t.Fatal(err)
	}
	first := s.Await(0, event.StepStarted, nil)
	s.Stop()
	asAnEarlierVersion(t, s)
	s.Start()
	again := s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.UUID == first.UUID && e.PID > first.PID })
	signal(t, s, again.PID, types.SIGKILL)
	fresh := s.Await(0, event.StepStarted, func(e *event.Event) bool { return e.UUID != first.UUID })
	if d := detail(t, s, fresh.UUID.String()); !slices.Contains(d.DeniedDevices, "/dev/fs/private") {
		t.Errorf("%v", d.DeniedDevices)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: "keeper", Signal: types.SIGKILL}); err != nil {
		t.Error(err)
	}
}
