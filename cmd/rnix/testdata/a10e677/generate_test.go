// This file made data.tar.bz2; README.md says how. It is built in a checkout of commit a10e677, never here.

package daemon_test

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/event"
	"rnix/internal/harness/vendortest"
	"rnix/internal/step"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// root is where everything lies: the records name it.
const root = "/tmp/rnix-a10e677"

// plays is what the model does, of plays.txt: one line for each of its answers.
var plays = map[string][]string{}

// readPlays reads plays.txt, which stands beside this file.
func readPlays(t *testing.T) {
	b, err := os.ReadFile(os.Getenv("PLAYS"))
	if err != nil {
		t.Fatal(err)
	}
	name := ""
	for line := range strings.Lines(string(b)) {
		answer, isAnswer := strings.CutPrefix(strings.TrimSuffix(line, "\n"), "\t")
		if !isAnswer {
			name = answer
			continue
		}
		n := 1
		if times, rest, ok := strings.Cut(answer, " times "); ok {
			n, answer = number(t, times), rest
		}
		for range n {
			plays[name] = append(plays[name], answer)
		}
	}
}

// compacted counts what the model was asked for the intent "play compact".
var compacted struct {
	sync.Mutex
	n int
}

// answer plays for a request.
func answer(r llmtest.Request) llmtest.Reply {
	name, done := "", 0
	for _, m := range r.Messages {
		for _, line := range strings.Split(m.Text, "\n") {
			if rest, ok := strings.CutPrefix(strings.TrimSpace(line), "play "); ok && m.Role == "user" {
				name, done = rest, 0
			}
		}
		done += len(m.Results)
	}
	if strings.HasPrefix(name, "compact") {
		compacted.Lock()
		defer compacted.Unlock()
		if len(r.Body) > 60_000 {
			return llmtest.Reply{Status: 400, Text: "prompt is too long: 123456 tokens > 4000 maximum"}
		}
		if compacted.n++; compacted.n > 12 {
			return llmtest.Reply{Text: "compacted"}
		}
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: fmt.Sprintf("compact_%d", compacted.n), Name: "read_file", Input: `{"path":"big.txt"}`}}}
	}
	for i, line := range plays[name] {
		switch say, isSay := strings.CutPrefix(line, "say "); {
		case isSay:
			return llmtest.Reply{Text: say, Usage: &llmtest.Usage{Input: 100, Output: 10}}
		case line == "hang", line == "asleep":
			return llmtest.Reply{Hang: true}
		case line == "fail":
			return llmtest.Reply{Status: 400, Text: "no"}
		}
		calls := strings.Split(line, " + ")
		if done >= len(calls) {
			done -= len(calls)
			continue
		}
		var out llmtest.Reply
		for j, c := range calls {
			tool, input, _ := strings.Cut(c, " ")
			out.ToolCalls = append(out.ToolCalls, llmtest.ToolCall{ID: fmt.Sprintf("%s_%d_%d", name, i, j), Name: tool, Input: input})
		}
		out.Usage = &llmtest.Usage{Input: 100, Output: 10}
		return out
	}
	return llmtest.Reply{Text: "nothing to play for " + name}
}

const supervisors = `supervisors:
  - name: night
    strategy: one_for_one
    children:
      - {name: sleeper, provider: anthropic, model: fake, intent: play sleeper}
      - {name: aide, provider: anthropic, model: fake, intent: play anew, restart: temporary}
`

const flow = `provider: anthropic
model: fake
agents:
  a: {intent: play node-a}
  b: {intent: play %s, depends_on: [a]}
  c: {intent: play anew, depends_on: [b]}
`

func TestGenerate(t *testing.T) {
	readPlays(t)
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
	_, url := llmtest.NewAPI(t, answer)
	s := testenv.New(t)
	s.Stop()
	s.Home, s.Data, s.Work = root+"/home", root+"/data", root+"/work"
	for _, d := range []string{s.Home, s.Work, root + "/run", root + "/tmp", root + "/bin"} {
		if err := os.MkdirAll(d, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink(vendortest.Program(t, "claude"), root+"/bin/claude"); err != nil {
		t.Fatal(err)
	}
	s.Env = []string{"HOME=" + s.Home, "PATH=" + root + "/bin:/usr/local/bin:/usr/bin:/bin", "RNIX_DATA_DIR=" + s.Data, "XDG_RUNTIME_DIR=" + root + "/run", "LANG=C.UTF-8", "TMPDIR=" + root + "/tmp",
		"GIT_AUTHOR_DATE=2026-01-02T03:04:05Z", "GIT_COMMITTER_DATE=2026-01-02T03:04:05Z",
		"ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL=" + url, "OPENAI_API_KEY=k", "OPENAI_BASE_URL=" + url + "/v1", "OPENAI_MODEL=fake", "RNIX_DAEMON_AUTO_RESUME=false"}
	write(t, s.Home+"/.config/rnix/config.yaml", "checkpoint: {every_steps: 3, every_seconds: 0}\n")
	write(t, s.Home+"/.config/rnix/mcp.yaml", "servers:\n  counts:\n    command: sh\n    args: ["+root+"/work/counts.sh]\n")
	write(t, s.Home+"/.config/rnix/providers.yaml", "providers:\n  - {name: anthropic, driver: anthropic, concurrency: 64}\n  - {name: tape, driver: replay, script: "+root+"/work/tape.yaml}\n")
	write(t, s.Work+"/counts.sh", counts)
	write(t, s.Work+"/tape.yaml", "version: \"1\"\nresponses:\n  - content: I look.\n    tool_calls: [{name: list_files, input: {}}]\n  - content: from the tape\n")
	write(t, s.Work+"/big.txt", strings.Repeat("a line of a file that is read again and again\n", 200))
	write(t, s.Work+"/.rnix/skills/careful/SKILL.md", "---\nname: careful\ndescription: when care is needed\n---\nBe careful.\n")
	write(t, s.Work+"/ended/first.txt", "there before\n")
	for _, dir := range []string{"flow-done", "flow-failed", "flow-open", "night"} {
		if err := os.MkdirAll(s.Work+"/"+dir, 0o700); err != nil {
			t.Fatal(err)
		}
	}
	p := newProject(t, s)
	s.Start()

	spawn := func(name string, change ...func(*ipc.SpawnRequest)) ipc.SpawnResponse {
		t.Helper()
		req := ipc.SpawnRequest{Intent: "play " + name, Name: name, Provider: "anthropic", Model: "fake", Cwd: s.Work + "/" + name}
		for _, f := range change {
			f(&req)
		}
		if err := os.MkdirAll(req.Cwd, 0o700); err != nil {
			t.Fatal(err)
		}
		return s.Spawn(req)
	}
	in := func(dir string) func(*ipc.SpawnRequest) { return func(r *ipc.SpawnRequest) { r.Cwd = dir } }
	tree := func(r *ipc.SpawnRequest) { r.Cwd, r.Worktree = p.dir, &ipc.WorktreeRequest{} }
	ends := func(name string, change ...func(*ipc.SpawnRequest)) ipc.SpawnResponse {
		t.Helper()
		r := spawn(name, change...)
		w := s.Wait(r.PID)
		t.Logf("%s: %v %q suspended %t", name, w.Exit, w.Result, w.Suspended)
		return r
	}
	// at waits until a process asks the model for the answer of a step.
	at := func(r ipc.SpawnResponse, n int) ipc.SpawnResponse {
		t.Helper()
		s.Await(r.PID, event.StepStarted, func(e *event.Event) bool { return e.Step == n })
		t.Logf("PID %d is at step %d", r.PID, n)
		return r
	}
	named := func(name string, n int) {
		t.Helper()
		var pid types.PID
		until(t, name+" is there", func() bool {
			d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: name})
			pid = d.PID
			return err == nil
		})
		at(ipc.SpawnResponse{PID: pid}, n)
	}
	fork := func(of, name, input string, from *int) {
		t.Helper()
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: of, Fork: true, FromStep: from, Name: name, NewInput: input, Env: s.Env})
		if err != nil {
			t.Fatal(err)
		}
		w := s.Wait(r.PID)
		t.Logf("%s: %v %q in %s", name, w.Exit, w.Result, r.WorkDir)
	}
	one, two := 1, 2

	// What has ended.
	ends("ended")
	ends("failed")
	signal(t, s, at(spawn("killed"), 2).PID, types.SIGKILL)
	r := spawn("terminated")
	until(t, "its command runs", func() bool { return len(children(t, s, r.PID)) > 0 })
	signal(t, s, r.PID, types.SIGTERM)
	signal(t, s, at(spawn("interrupted"), 1).PID, types.SIGINT)
	ends("timeout", func(r *ipc.SpawnRequest) { r.TimeoutMs = 300 })
	ends("max-steps", func(r *ipc.SpawnRequest) { r.MaxSteps = &two })
	ends("plan", in(s.Work))
	ends("input", func(r *ipc.SpawnRequest) {
		r.Inputs = []step.Input{{Name: "pipe", Text: "data from a pipe\n"}, {Name: "notes.txt", Text: "notes\n"}}
	})
	ends("compact", in(s.Work))
	ends("tape", func(r *ipc.SpawnRequest) { r.Provider, r.Model = "tape", "" })
	ends("openai", func(r *ipc.SpawnRequest) { r.Provider = "openai" })
	ends("offline", func(r *ipc.SpawnRequest) {
		r.Provider, r.Model, r.Intent = "offline", "", "run `echo offline >offline.txt`"
	})
	ends("in-git", in(p.dir))
	p.git(p.dir, "checkout", "-q", "README.md")
	fork("ended", "fork-mid", "", &two)
	fork("ended", "fork-end", "play anew", nil)
	fork("in-git", "fork-git", "play anew", nil)
	ends("tree", tree)
	fork("tree", "fork-tree", "play anew", nil)
	ends("tree-lead", in(p.dir))
	removed := ends("removed", tree)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, ipc.RemoveWorktreeRequest{Target: removed.UUID.String()}); err != nil {
		t.Fatal(err)
	}
	pinned, archived := ends("pinned"), ends("archived")
	ends("aged")
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Keep, ipc.KeepRequest{Target: "pinned", Note: "the first of its kind"}); err != nil {
		t.Fatal(err)
	}
	age(t, s, pinned.UUID, archived.UUID)
	g, err := ipc.Call(t.Context(), s.Client, ipc.GC, ipc.GCRequest{})
	if err != nil || len(g.Archived) != 1 {
		t.Fatalf("%+v %v", g, err)
	}
	ends("restored", func(r *ipc.SpawnRequest) { r.Intent = "play ended" })
	if _, err := ipc.Call(t.Context(), s.Client, ipc.RestoreFiles, ipc.RestoreRequest{Target: "restored", Step: &one}); err != nil {
		t.Fatal(err)
	}
	up := func(name, node string) {
		t.Helper()
		if _, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{File: name + ".yaml", Path: s.Work + "/" + name + "/compose.yaml", Text: fmt.Sprintf(flow, node),
			Name: name, Cwd: s.Work + "/" + name, Env: s.Env}); err != nil {
			t.Fatal(err)
		}
	}
	up("flow-done", "node-a")
	composed(t, s, "flow-done", runEnded)
	up("flow-failed", "node-no")
	composed(t, s, "flow-failed", runEnded)

	// Agent CLIs, if the real claude is here.
	harnessed := func(r *ipc.SpawnRequest) { r.Provider, r.Model = "claude-agent", "" }
	ends("claude", harnessed)

	// What a stop suspends.
	ends("budget", func(r *ipc.SpawnRequest) { n := 300; r.ContextBudget = &n })
	at(spawn("stopped"), 2)
	pause := at(spawn("paused"), 2)
	signal(t, s, pause.PID, types.SIGPAUSE)
	mail := at(spawn("mail"), 2)
	for _, text := range []string{"first letter", "second letter"} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Send, ipc.SendRequest{Target: mail.UUID.String(), Text: text}); err != nil {
			t.Fatal(err)
		}
	}
	at(spawn("grouped", func(r *ipc.SpawnRequest) { r.Group = "batch" }), 1)
	at(spawn("mcp", func(r *ipc.SpawnRequest) { r.MCP = []string{"counts"} }), 2)
	at(spawn("long"), 41)
	at(spawn("tree-open", tree), 2)
	spawn("claude-open", harnessed)
	until(t, "claude has written a file", func() bool { _, err := os.Stat(s.Work + "/claude-open/claude.txt"); return err == nil })
	time.Sleep(300 * time.Millisecond) // it asks its model
	spawn("parent")
	named("child", 2)
	spawn("lead")
	named("helper", 2)
	up("flow-open", "node-b")
	named("flow-open/b", 1)
	write(t, s.Work+"/night.yaml", supervisors)
	if _, err := ipc.Call(t.Context(), s.Client, ipc.SuperviseUp, ipc.SuperviseRequest{ProjectRequest: ipc.ProjectRequest{Cwd: s.Work + "/night", Env: s.Env}, File: "night.yaml", Source: supervisors}); err != nil {
		t.Fatal(err)
	}
	named("sleeper", 1)
	until(t, "the aide has ended", func() bool {
		d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: "aide"})
		return err == nil && d.State == "dead"
	})
	s.Stop()
	s.Start()
	s.Settle()
	for _, who := range []struct{ target, text string }{{"mail", "third letter, to who is suspended"}, {"aged", "a letter to who has ended"}} {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Steer, ipc.SendRequest{Target: who.target, Text: who.text}); err != nil {
			t.Logf("%s: %v", who.target, err)
		}
	}

	// What is cut off.
	at(spawn("cut-model"), 2)
	spawn("cut-shell")
	until(t, "its command runs", func() bool { _, err := os.Stat(s.Work + "/cut-shell/cut-shell.txt"); return err == nil })
	spawn("cut-child")
	named("cut-kid", 1)
	signal(t, s, at(spawn("cut-paused"), 2).PID, types.SIGPAUSE)
	at(spawn("cut-tree", tree), 2)
	l, err := ipc.Call(t.Context(), s.Client, ipc.ListProcs, ipc.ListRequest{All: true})
	if err != nil {
		t.Fatal(err)
	}
	for i := range l.Procs {
		q := &l.Procs[i]
		t.Logf("%3d %-12s %-10s step %d exit %v wait %s", q.PID, q.Name, q.State, q.Step, q.Exit, q.Wait)
	}
	time.Sleep(300 * time.Millisecond) // what is written in the background
	s.Kill()
	pack(t)
}

// pack makes the archive of what the daemon has left: not its log, its socket and its locks. Files of one name are beside each other, which
// makes it a third smaller. The boot in the notes of its OS children is made another one.
func pack(t *testing.T) {
	t.Helper()
	boots, err := filepath.Glob(root + "/data/children/*.json")
	if err != nil || len(boots) == 0 {
		t.Fatal(boots, err)
	}
	for _, path := range boots {
		b, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, regexp.MustCompile(`"boot":"[^"]*"`).ReplaceAllString(string(b), `"boot":"00000000-0000-4000-8000-000000000000"`))
	}
	list := filepath.Join(t.TempDir(), "list")
	var names []string
	err = filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		rel := strings.TrimPrefix(path, root+"/")
		switch {
		case err != nil:
			return err
		case rel == "run", rel == "tmp", rel == "bin", rel == "data/log", strings.HasSuffix(rel, ".git/hooks"):
			return fs.SkipDir
		case strings.HasPrefix(rel, "home/.") && rel != "home/.gitconfig" && !strings.HasPrefix(rel, "home/.config"):
			return nil // claude's own
		case d.Type()&fs.ModeSocket != 0, strings.HasSuffix(rel, ".lock"):
			return nil
		}
		if !d.IsDir() || isEmpty(path) {
			names = append(names, rel)
		}
		return nil
	})
	slices.SortStableFunc(names, func(a, b string) int { return strings.Compare(filepath.Base(a), filepath.Base(b)) })
	if err == nil {
		err = os.WriteFile(list, []byte(strings.Join(names, "\n")+"\n"), 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("sh", "-c", "tar -C "+root+" --owner=user:1000 --group=user:1000 -T "+list+" -cf - | bzip2 -9 >"+os.Getenv("FIXTURE"))
	if out, err := c.CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	if err := os.RemoveAll(root); err != nil {
		t.Fatal(err)
	}
}

func isEmpty(dir string) bool {
	l, err := os.ReadDir(dir)
	return err == nil && len(l) == 0
}
