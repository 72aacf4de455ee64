package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/harness/vendortest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
)

// user is somebody with the program, a daemon of their own, and a real agent command line.
type user struct {
	*vendortest.Vendor
	t   *testing.T
	exe string
	env []string
}

// newUser gives a test a user of a real command line.
func newUser(t *testing.T, name string, script func(llmtest.Request) llmtest.Reply) *user {
	t.Helper()
	return userOf(t, name, vendortest.Program(t, name), script)
}

// userOf gives a test a user whose command line of that name is a program.
func userOf(t *testing.T, name, program string, script func(llmtest.Request) llmtest.Reply) *user {
	t.Helper()
	exe, err := exec.LookPath("rnix") // which TestMain has put there
	if err != nil {
		t.Fatal(err)
	}
	u := &user{Vendor: vendortest.New(t, script), t: t, exe: exe}
	run, err := os.MkdirTemp("", "rnix") // a short name: a socket lies in it
	if err != nil {
		t.Fatal(err)
	}
	data, bin := filepath.Join(u.Home, "data"), filepath.Join(u.Home, "bin")
	if err := os.Mkdir(bin, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(program, filepath.Join(bin, name)); err != nil {
		t.Fatal(err)
	}
	u.env = append(u.Environ(), "PATH="+bin+":"+os.Getenv("PATH"), "XDG_RUNTIME_DIR="+run, "RNIX_DATA_DIR="+data, "TERM=dumb", "GORACE=atexit_sleep_ms=0", cmp.Or(os.Getenv("RNIX_TEST_LEVEL"), testenv.SandboxOff))
	for k, v := range u.Vars {
		u.env = append(u.env, k+"="+v)
	}
	t.Cleanup(func() {
		if out, code := u.rnix("daemon", "stop"); code != 0 {
			t.Errorf("daemon stop: %s", out)
		}
		if log, err := os.ReadFile(filepath.Join(data, "log", "daemon.log")); err == nil && (bytes.Contains(log, []byte("panic")) || bytes.Contains(log, []byte("DATA RACE"))) {
			t.Errorf("the daemon's log has a panic or a data race:\n%s", log)
		}
		_ = os.RemoveAll(run)
	})
	return u
}

// command is the program with arguments, in the user's work directory.
func (u *user) command(args ...string) *exec.Cmd {
	c := exec.Command(u.exe, args...)
	c.Env, c.Dir = u.env, u.Work
	return c
}

// rnix runs the program and returns what it prints and its exit code.
func (u *user) rnix(args ...string) (string, int) {
	u.t.Helper()
	c := u.command(args...)
	out, err := c.CombinedOutput()
	if _, exited := err.(*exec.ExitError); err != nil && !exited {
		u.t.Fatal(err)
	}
	return string(out), c.ProcessState.ExitCode()
}

// must is rnix for a command that has to succeed.
func (u *user) must(args ...string) string {
	u.t.Helper()
	out, code := u.rnix(args...)
	if code != 0 {
		u.t.Fatalf("rnix %s: exit code %d\n%s", strings.Join(args, " "), code, out)
	}
	return out
}

// use is a reply that calls a tool.
func use(name string, input map[string]any) llmtest.Reply {
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{Name: name, Input: string(b)}}}
}

func TestRealClaudeIsAProcessWithItsOwnTools(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.Answer(vendortest.Play(use("Write", map[string]any{"file_path": filepath.Join(u.Work, "a.txt"), "content": "by claude"}), llmtest.Reply{Text: "the file is there"}))
	out := u.must("run", "--harness", "claude", "--name", "writer", "write a.txt")
	if !strings.Contains(out, "the file is there") {
		t.Errorf("%s", out)
	}
	if b, err := os.ReadFile(filepath.Join(u.Work, "a.txt")); err != nil || string(b) != "by claude" {
		t.Errorf("%q, %v", b, err)
	}
	if steps := u.must("steps", "writer"); !strings.Contains(steps, "Write") || !strings.Contains(steps, "claude-agent/") {
		t.Errorf("%s", steps)
	}
	if cost := u.must("cost"); !strings.Contains(cost, "$") || strings.Contains(cost, "no known price") {
		t.Errorf("%s", cost)
	}
}

// allowed lets claude run commands of its own.
func (u *user) allowed(tools ...string) {
	u.t.Helper()
	b, err := json.Marshal(map[string]any{"permissions": map[string]any{"allow": tools}})
	if err == nil {
		err = os.MkdirAll(filepath.Join(u.Home, ".claude"), 0o700)
	}
	if err == nil {
		err = os.WriteFile(filepath.Join(u.Home, ".claude", "settings.json"), b, 0o600)
	}
	if err != nil {
		u.t.Fatal(err)
	}
}

// eventually waits until a command prints what matches.
func (u *user) eventually(pattern string, args ...string) string {
	u.t.Helper()
	want := regexp.MustCompile(pattern)
	out := ""
	if !testenv.Within(2*time.Minute, func() bool { out, _ = u.rnix(args...); return want.MatchString(out) }) {
		u.t.Fatalf("rnix %s never says %s:\n%s", strings.Join(args, " "), pattern, out)
	}
	return out
}

// waits is a command that runs until a file is there.
const waits = "echo begun > began; until [ -e gate ]; do sleep 0.05; done; echo passed"

// exists waits until a file of the work directory is there.
func (u *user) exists(name string) {
	u.t.Helper()
	if !testenv.Within(2*time.Minute, func() bool { _, err := os.Stat(filepath.Join(u.Work, name)); return err == nil }) {
		u.t.Fatalf("%s never comes; log:\n%s", name, u.must("log", "p"))
	}
}

func (u *user) write(name string) {
	u.t.Helper()
	if err := os.WriteFile(filepath.Join(u.Work, name), nil, 0o600); err != nil {
		u.t.Fatal(err)
	}
}

// children returns the processes that work in the work directory.
func (u *user) children() []int {
	u.t.Helper()
	var pids []int
	entries, _ := filepath.Glob("/proc/[0-9]*/cwd")
	for _, e := range entries {
		if dir, err := os.Readlink(e); err == nil && strings.HasPrefix(dir, u.Work) {
			pid, _ := strconv.Atoi(strings.Split(e, "/")[2])
			pids = append(pids, pid)
		}
	}
	return pids
}

func TestRealClaudeIsPausedSteeredAndGoesOnAfterACrash(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.allowed("Bash")
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		switch {
		case vendortest.Heard(r, "be quick"):
			return llmtest.Reply{Text: "quick it is"}
		case r.N == 0:
			return use("Bash", map[string]any{"command": waits, "description": "waits"})
		}
		return llmtest.Reply{Text: "not told"}
	})
	u.must("run", "--detach", "--harness", "claude", "--name", "p", "wait for the gate")
	u.exists("began")
	u.must("pause", "p")
	u.eventually(`suspended`, "ps")
	u.write("gate")
	before := len(u.Requests())
	u.must("steer", "--no-wait", "p", "be quick")
	if n := len(u.Requests()); n != before {
		t.Errorf("it asked its model while it was paused")
	}
	u.must("resume", "p")
	out := u.must("wait", "p")
	if !strings.Contains(out, "quick it is") {
		t.Errorf("%s", out)
	}
	if left := u.children(); len(left) > 0 {
		t.Errorf("left: %v", left)
	}
}

func TestRealClaudeGoesOnAfterACrashOfTheDaemon(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.allowed("Bash")
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		switch {
		case vendortest.Heard(r, "You were interrupted"):
			return llmtest.Reply{Text: "went on"}
		case r.N == 0:
			return use("Bash", map[string]any{"command": "echo 1 >> runs", "description": "notes"})
		}
		return use("Bash", map[string]any{"command": waits, "description": "waits"})
	})
	u.must("run", "--detach", "--harness", "claude", "--name", "p", "note, then wait for the gate")
	u.exists("began")
	if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	u.must("daemon", "start") // which ends what the last one has left
	if !testenv.Within(time.Minute, func() bool { return len(u.children()) == 0 }) {
		t.Fatalf("left of the daemon: %v", u.children())
	}
	if out := u.must("wait", "p"); !strings.Contains(out, "went on") {
		t.Errorf("%s\n%s", out, u.must("log", "p"))
	}
	if b, err := os.ReadFile(filepath.Join(u.Work, "runs")); err != nil || string(b) != "1\n" {
		t.Errorf("what was done was done again: %q %v", b, err)
	}
}

// daemon returns the PID of the daemon.
func (u *user) daemon() int {
	u.t.Helper()
	m := regexp.MustCompile(`"pid":\s*([0-9]+)`).FindStringSubmatch(u.must("daemon", "status", "--json"))
	if m == nil {
		u.t.Fatal("the daemon does not say its PID")
	}
	pid, err := strconv.Atoi(m[1])
	if err != nil {
		u.t.Fatal(err)
	}
	return pid
}

func TestRealClaudeEndsWithEverythingWhenItIsKilled(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.allowed("Bash")
	u.Answer(vendortest.Play(use("Bash", map[string]any{"command": waits, "description": "waits"})))
	u.must("run", "--detach", "--harness", "claude", "--name", "p", "wait for the gate")
	u.exists("began")
	if len(u.children()) < 2 {
		t.Errorf("the command line and its command are not there: %v", u.children())
	}
	u.must("kill", "-KILL", "p")
	if _, code := u.rnix("wait", "p"); code != 5 {
		t.Errorf("exit code %d, want 5: ended by a person", code)
	}
	if !testenv.Within(time.Minute, func() bool { return len(u.children()) == 0 }) {
		t.Fatalf("left: %v", u.children())
	}
	if left, _ := filepath.Glob(filepath.Join(u.Home, "data", "steps", "*", "harness", "*.json")); len(left) > 0 {
		t.Errorf("credentials are left: %v", left)
	}
}

func TestRealClaudeStopsAtItsBudgetAndGoesOnWithMore(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		if vendortest.Heard(r, "You were interrupted") {
			return llmtest.Reply{Text: "done", Usage: &llmtest.Usage{Input: 10, Output: 10}}
		}
		reply := use("Write", map[string]any{"file_path": filepath.Join(u.Work, strconv.Itoa(r.N)), "content": "x"})
		reply.Usage = &llmtest.Usage{Input: 900, Output: 100}
		return reply
	})
	out, code := u.rnix("run", "--harness", "claude", "--budget", "3000", "--name", "p", "write files for ever")
	if code == 0 || !strings.Contains(out, "budget: ") {
		t.Errorf("exit code %d\n%s", code, out)
	}
	if n := len(u.Requests()); n > 6 { // it goes on while what it has done is being recorded
		t.Errorf("%d requests with a budget for 3", n)
	}
	u.must("resume", "--budget", "9000", "p")
	if out := u.must("wait", "p"); !strings.Contains(out, "done") {
		t.Errorf("%s", out)
	}
}

func TestRealClaudeWithTheKernelsToolsAlone(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.write("a.txt")
	u.Answer(vendortest.Play(
		use("mcp__rnix__shell", map[string]any{"command": "echo from the kernel > a.txt; cat a.txt"}),
		use("mcp__rnix__read_file", map[string]any{"path": "a.txt"}),
		use("mcp__rnix__read_file", map[string]any{"path": "/etc/shadow"}),
		llmtest.Reply{Text: "read it"}))
	out := u.must("run", "--harness", "claude", "--tools", "kernel", "--name", "p", "write and read a.txt")
	if !strings.Contains(out, "read it") {
		t.Errorf("%s", out)
	}
	asked := u.Requests()
	for _, name := range asked[0].Tools {
		if !strings.HasPrefix(name, "mcp__rnix__") && name != "DeferredToolPlaceholder" { // which does nothing
			t.Errorf("it has a tool of its own: %s", name)
		}
	}
	if !slices.Contains(asked[0].Tools, "mcp__rnix__spawn") || slices.Contains(asked[0].Tools, "mcp__rnix__complete") {
		t.Errorf("tools: %v", asked[0].Tools)
	}
	if r, ok := asked[len(asked)-1].LastResult(); !ok || !r.IsError {
		t.Errorf("a file that it may not read: %+v", r)
	}
	steps := u.must("steps", "p")
	for _, want := range []string{"shell echo from the kernel", "read_file a.txt", "read_file /etc/shadow (failed"} {
		if !strings.Contains(steps, want) {
			t.Errorf("no step %q in\n%s", want, steps)
		}
	}
	if ledger := u.must("ledger", "p"); strings.Count(ledger, "done")+strings.Count(ledger, "failed") < 3 {
		t.Errorf("%s", ledger)
	}
	if out, code := u.rnix("run", "--harness", "claude", "--tools", "kernel", "--deny", "/dev/shell", "x"); code != 0 {
		t.Errorf("%s", out)
	}
	asked = u.Requests()
	if last := asked[len(asked)-1]; slices.Contains(last.Tools, "mcp__rnix__shell") {
		t.Errorf("it may not have a shell, and is offered one: %v", last.Tools)
	}
}

// Who may not run commands, or not change files, has no tools of its own that do: neither when a person denies it nor below a
// parent that may not.
func TestRealClaudeHasNoMoreThanItsProcessMay(t *testing.T) { // T5
	u := newUser(t, "claude", func(llmtest.Request) llmtest.Reply { return llmtest.Reply{Text: "done"} })
	for _, device := range []string{"/dev/shell", "/dev/workspace", "/dev/fs"} {
		u.must("run", "--harness", "claude", "--deny", device, "x")
		asked := u.Requests()
		for _, name := range asked[len(asked)-1].Tools {
			if !strings.HasPrefix(name, "mcp__rnix__") && name != "DeferredToolPlaceholder" {
				t.Errorf("without %s it has a tool of its own: %s", device, name)
			}
		}
	}
	config := filepath.Join(u.Home, ".config", "rnix")
	for name, text := range map[string]string{
		"providers.yaml":           "providers:\n  - {name: parent, driver: replay, script: parent.yaml}\n",
		"parent.yaml":              "version: \"1\"\nresponses:\n  - tool_calls: [{name: spawn, id: c1, input: {intent: x, agent: helper}}]\n  - content: the child is done\n",
		"agents/boss/agent.yaml":   "name: boss\nmodels: {provider: parent}\n",
		"agents/helper/agent.yaml": "name: helper\nmodels: {provider: claude-agent}\n",
	} {
		path := filepath.Join(config, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	n := len(u.Requests())
	if out := u.must("run", "--agent", "boss", "--deny", "/dev/shell", "go"); !strings.Contains(out, "the child is done") {
		t.Errorf("%s", out)
	}
	asked := u.Requests()
	if len(asked) == n {
		t.Fatalf("the child has not asked: %s", u.must("ps", "-a"))
	}
	for _, name := range asked[len(asked)-1].Tools {
		if !strings.HasPrefix(name, "mcp__rnix__") && name != "DeferredToolPlaceholder" {
			t.Errorf("below a parent without a shell it has a tool of its own: %s", name)
		}
	}
}

// kernelUse is a reply of codex's vendor that calls a tool of the kernel.
func kernelUse(name string, input map[string]any) llmtest.Reply {
	r := use(name, input)
	r.ToolCalls[0].Namespace = "mcp__rnix"
	return r
}

func TestRealCodexWithTheKernelsToolsAlone(t *testing.T) {
	u := newUser(t, "codex", nil)
	u.Answer(vendortest.Play(
		kernelUse("shell", map[string]any{"command": "echo from the kernel > a.txt; cat a.txt"}),
		kernelUse("read_file", map[string]any{"path": "a.txt"}),
		llmtest.Reply{Text: "read it"}))
	out := u.must("run", "--harness", "codex", "--model", "gpt-5-codex", "--tools", "kernel", "--name", "p", "write and read a.txt")
	if !strings.Contains(out, "read it") {
		t.Errorf("%s", out)
	}
	steps := u.must("steps", "p")
	for _, want := range []string{"shell echo from the kernel", "read_file a.txt"} {
		if !strings.Contains(steps, want) {
			t.Errorf("no step %q in\n%s\n%s", want, steps, u.must("log", "p"))
		}
	}
}

// lines are the real command lines, how each is run with the kernel's tools alone, and how its model calls one.
var lines = map[string]struct {
	args []string
	use  func(string, map[string]any) llmtest.Reply
}{
	"claude": {[]string{"--harness", "claude"}, func(name string, in map[string]any) llmtest.Reply { return use("mcp__rnix__"+name, in) }},
	"codex":  {[]string{"--harness", "codex", "--model", "gpt-5-codex"}, kernelUse},
}

func TestRealCommandLinesInTheMiddleOfACallOfTheKernel(t *testing.T) {
	for _, cell := range soak.Cells(t, "command lines in a call of the kernel, and what cuts it off", []string{"claude", "codex"}, []string{"crash", "pause", "kill"}) {
		name, how := cell[0], cell[1]
		l := lines[name]
		t.Run(name+" "+how, func(t *testing.T) {
			u := newUser(t, name, nil)
			u.Answer(func(r llmtest.Request) llmtest.Reply {
				switch {
				case vendortest.Heard(r, "You were interrupted"):
					return llmtest.Reply{Text: "went on"}
				case r.N == 0:
					return l.use("shell", map[string]any{"command": "echo 1 >> runs; " + waits})
				}
				if res, ok := r.LastResult(); ok && strings.Contains(res.Text, "passed") {
					return llmtest.Reply{Text: "it has passed"}
				}
				return llmtest.Reply{Text: "not told"}
			})
			u.must(append(append([]string{"run", "--detach", "--tools", "kernel", "--name", "p"}, l.args...), "wait for the gate")...)
			u.exists("began")
			want, code := "it has passed", 0
			switch how {
			case "crash":
				if err := syscall.Kill(u.daemon(), syscall.SIGKILL); err != nil {
					t.Fatal(err)
				}
				u.must("daemon", "start")
				want = "went on"
			case "kill":
				u.must("kill", "-KILL", "p")
				want, code = "", 5
			case "pause":
				u.must("pause", "p")
				u.write("gate")
				u.must("resume", "p")
			}
			out, got := u.rnix("wait", "p")
			if got != code || !strings.Contains(out, want) {
				t.Errorf("exit code %d, %s\n%s", got, out, u.must("log", "p"))
			}
			if !testenv.Within(time.Minute, func() bool { return len(u.children()) == 0 }) {
				t.Fatalf("left: %v", u.children())
			}
			if b, err := os.ReadFile(filepath.Join(u.Work, "runs")); err != nil || string(b) != "1\n" {
				t.Errorf("the command ran again: %q %v", b, err)
			}
		})
	}
}

func TestRealClaudeInAWorkTreeOfItsOwn(t *testing.T) {
	u := newUser(t, "claude", nil)
	for _, args := range [][]string{{"init", "-q", "-b", "main"}, {"config", "user.name", "A"}, {"config", "user.email", "a@example"}, {"commit", "-q", "--allow-empty", "-m", "first"}} {
		c := exec.Command("git", args...)
		c.Dir, c.Env = u.Work, append(u.env, "GIT_CONFIG_NOSYSTEM=1")
		if out, err := c.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v %s", args, err, out)
		}
	}
	u.Answer(vendortest.Play(
		use("mcp__rnix__write_file", map[string]any{"path": "sum.sh", "content": "echo $((1 + 2))\n"}),
		use("mcp__rnix__shell", map[string]any{"command": "[ \"$(sh sum.sh)\" = 3 ] && echo the test passes"}),
		llmtest.Reply{Text: "it works"}))
	out := u.must("run", "--harness", "claude", "--tools", "kernel", "--worktree", "--name", "p", "write sum.sh and test it")
	if !strings.Contains(out, "it works") || !strings.Contains(out, "rnix merge") {
		t.Errorf("%s", out)
	}
	if _, err := os.Stat(filepath.Join(u.Work, "sum.sh")); err == nil {
		t.Error("it has worked in the user's own tree")
	}
	if diff := u.must("diff", "p"); !strings.Contains(diff, "+echo $((1 + 2))") || strings.Contains(diff, ".agent") {
		t.Errorf("%s", diff)
	}
	tree := strings.TrimSpace(u.must("worktree", "path", "p"))
	if b, err := os.ReadFile(filepath.Join(tree, ".agent", "state.json")); err != nil || !strings.Contains(string(b), `"currentStep": "completed"`) {
		t.Errorf("%s %v", b, err)
	}
	u.must("merge", "p")
	if b, err := os.ReadFile(filepath.Join(u.Work, "sum.sh")); err != nil || string(b) != "echo $((1 + 2))\n" {
		t.Errorf("%q %v", b, err)
	}
}

func TestRealClaudeIsANodeOfAWorkflow(t *testing.T) {
	u := newUser(t, "claude", nil)
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		if vendortest.Heard(r, "sum up") {
			if !vendortest.Heard(r, "forty-two") {
				return llmtest.Reply{Text: "nothing was handed on"}
			}
			return llmtest.Reply{Text: "it is forty-two"}
		}
		return llmtest.Reply{Text: "the answer: forty-two"}
	})
	file := filepath.Join(u.Work, "compose.yaml")
	if err := os.WriteFile(file, []byte(`version: "1"
name: two
nodes:
  ask: {intent: what is the answer, provider: claude-agent}
  sum: {intent: sum up, provider: claude-agent, depends_on: [ask]}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	out := u.must("compose", "up", "--file", file)
	if !strings.Contains(out, "it is forty-two") {
		t.Errorf("%s", out)
	}
}

func TestRealOpencodeWithTheKernelsToolsAlone(t *testing.T) {
	if left(t, "opencode") {
		t.Skip("needs RNIX_SOAK: it starts slowly")
	}
	u := newUser(t, "opencode", nil)
	u.Answer(func(r llmtest.Request) llmtest.Reply {
		if res, ok := r.LastResult(); ok {
			return llmtest.Reply{Text: "it says " + res.Text}
		}
		return use("rnix_shell", map[string]any{"command": "echo from the kernel"})
	})
	u.opencodeConfig()
	out := u.must("run", "--harness", "opencode", "--tools", "kernel", "--name", "p", "ask the kernel")
	if !strings.Contains(out, "it says") || !strings.Contains(out, "from the kernel") {
		t.Errorf("%s\n%s", out, u.must("log", "p"))
	}
	if steps := u.must("steps", "p"); !strings.Contains(steps, "shell echo from the kernel") {
		t.Errorf("%s", steps)
	}
	asked := u.Requests()
	namesItsTools(t, "the agent", asked[len(asked)-1])
}

// opencodeConfig has opencode ask the stand-in.
func (u *user) opencodeConfig() {
	u.t.Helper()
	dir := u.UsedOpencode(u.t)
	config, err := json.Marshal(map[string]any{"model": "fake/m1", "provider": map[string]any{"fake": map[string]any{
		"npm": "@ai-sdk/openai-compatible", "name": "fake", "options": map[string]string{"baseURL": u.URL + "/v1", "apiKey": "{env:OPENAI_API_KEY}"},
		"models": map[string]any{"m1": map[string]any{"name": "m1", "limit": map[string]int{"context": 100000, "output": 1000}}}}}})
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "opencode.json"), config, 0o600)
	}
	if err != nil {
		u.t.Fatal(err)
	}
}
