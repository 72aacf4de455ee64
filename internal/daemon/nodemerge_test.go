package daemon_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// doesAsTold is a model that runs the command behind "do: " in what it is told, the n-th of those between " then " at its n-th attempt, and ends. told
// gets what each was told.
func doesAsTold(told *sync.Map) func(llmtest.Request) llmtest.Reply {
	var mu sync.Mutex
	tries := map[string]int{}
	return func(r llmtest.Request) llmtest.Reply {
		text := ""
		for _, m := range r.Messages {
			text += m.Text + "\n"
		}
		is := regexp.MustCompile(`do (\w+): ([^\n]*)`).FindStringSubmatch(text)
		if is == nil {
			return llmtest.Reply{Text: "nothing"}
		}
		if results(r) > 0 {
			return llmtest.Reply{Text: "done"}
		}
		mu.Lock()
		defer mu.Unlock()
		told.Store(is[1], text)
		commands := strings.Split(is[2], " then ")
		command := commands[min(tries[is[1]], len(commands)-1)]
		tries[is[1]]++
		return llmtest.Reply{ToolCalls: []llmtest.ToolCall{toolCall("shell", map[string]string{"command": command})}}
	}
}

func upIn(t *testing.T, s *testenv.System, p *project, nodes string) ipc.ComposeRun {
	t.Helper()
	up, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{Name: "w", Text: "provider: anthropic\nmodel: fake\nagents:\n" + nodes, Cwd: p.dir, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	return composed(t, s, up.UUID.String(), runEnded)
}

func nodeOf(t *testing.T, r *ipc.ComposeRun, name string) *ipc.ComposeNode {
	t.Helper()
	i := slices.IndexFunc(r.Nodes, func(n ipc.ComposeNode) bool { return n.Name == name })
	if i < 0 {
		t.Fatalf("no node %s in %+v", name, r.Nodes)
	}
	return &r.Nodes[i]
}

// treeDir is the work tree of a node.
func treeDir(t *testing.T, s *testenv.System, n *ipc.ComposeNode) string {
	t.Helper()
	w, err := ipc.Call(t.Context(), s.Client, ipc.ShowWorktree, ipc.TargetRequest{Target: n.UUID.String()})
	if err != nil {
		t.Fatal(n.Name, err)
	}
	return w.Dir
}

func TestANodeBeginsWithTheWorkOfThoseThatItWaitsFor(t *testing.T) {
	var told sync.Map
	s, p := treeTest(t, doesAsTold(&told))
	head := p.git(p.dir, "rev-parse", "HEAD")
	r := upIn(t, s, p, `
  a: {intent: "do a: echo a > a.txt; git add a.txt; git commit -qm 'a commits'; echo more > left.txt; echo x > no.log", worktree: true}
  b: {foreach: [one, two], intent: "do ${item}: echo ${item} > ${item}.txt", worktree: true}
  bad: {intent: "do bad: echo bad > bad.txt", worktree: true, output: {schema: {type: array}}}
  look: {depends_on: [a], intent: "do look: ls"}
  c: {depends_on: {look: succeeded, b: succeeded, bad: completed}, intent: "do c: ls; echo c > c.txt", worktree: true}
  d: {depends_on: [c], intent: "do d: rm left.txt", worktree: true}
`)
	if st := nodeOf(t, &r, "d").State; st != "succeeded" {
		t.Fatalf("d %s: %+v", st, r.Nodes)
	}
	c := treeDir(t, s, nodeOf(t, &r, "c"))
	for _, name := range []string{"a.txt", "left.txt", "one.txt", "two.txt", "c.txt", "README.md"} {
		if _, err := os.Stat(filepath.Join(c, name)); err != nil {
			t.Errorf("c lacks %s", name)
		}
	}
	for _, name := range []string{"bad.txt", "no.log"} { // a failed node's, and one that git ignores
		if _, err := os.Stat(filepath.Join(c, name)); err == nil {
			t.Errorf("c has %s", name)
		}
	}
	w, err := ipc.Call(t.Context(), s.Client, ipc.ShowWorktree, ipc.TargetRequest{Target: nodeOf(t, &r, "c").UUID.String()})
	if err != nil || len(w.Files) != 1 || w.Files[0].Path != "c.txt" || w.BaseName != "main" {
		t.Errorf("the work of c is %+v, %v", w, err) // its own alone
	}
	last := ipc.MergeRequest{Target: nodeOf(t, &r, "d").UUID.String(), Preview: true}
	m, err := ipc.Call(t.Context(), s.Client, ipc.Merge, last)
	if err != nil || m.Preview == nil || !m.Preview.Uncommitted || !m.Forward || len(m.Files) != 4 {
		t.Errorf("preview %+v, %v", m, err)
	}
	if now := p.git(p.dir, "rev-parse", "HEAD"); now != head {
		t.Errorf("a preview has merged")
	}
	last.Preview = false
	if m, err = ipc.Call(t.Context(), s.Client, ipc.Merge, last); err != nil || len(m.Files) != 4 {
		t.Fatalf("merge %+v, %v", m, err)
	}
	if got := strings.Fields(p.git(p.dir, "ls-files")); !slices.Equal(got, []string{".gitignore", "README.md", "a.txt", "c.txt", "one.txt", "two.txt"}) {
		t.Errorf("the branch has %q", got)
	}
	if log := p.git(p.dir, "log", "--format=%s"); !strings.Contains(log, "a commits") || !strings.Contains(log, "Merge the work of b[1]") {
		t.Errorf("log:\n%s", log)
	}
}

const clashFlow = `
  a: {intent: "do a: echo a > README.md", worktree: true}
  b: {intent: "do b: echo b > README.md", worktree: true}
  c: {depends_on: [a, b], intent: "do c: cat README.md then echo both > README.md", retries: {max: 2, backoff: {initial: 1ms}}, worktree: %s}
`

func TestAConflictIsAnOutcomeThatAPersonResolves(t *testing.T) {
	var told sync.Map
	s, p := treeTest(t, doesAsTold(&told))
	r := upIn(t, s, p, strings.Replace(clashFlow, "%s", "true", 1))
	c := nodeOf(t, &r, "c")
	if c.State != "failed" || c.Kind != "conflict" || !slices.Equal(c.Files, []string{"README.md"}) || c.Attempt != 1 {
		t.Fatalf("%+v", c)
	}
	mend := regexp.MustCompile(`resolve it with: git -C '(\S+)' merge '(\S+)', then: rnix compose resume w`).FindStringSubmatch(c.Why)
	if mend == nil || mend[1] != treeDir(t, s, nodeOf(t, &r, "b")) || mend[2] != "rnix/w-a" {
		t.Fatalf("why: %s", c.Why)
	}
	if _, err := os.Stat(filepath.Join(s.Data, "worktrees", c.UUID.String())); err == nil {
		t.Error("the node that was not started has a work tree")
	}
	s.Kill() // what it has come to is on disk
	s.Start()
	s.Settle()
	run := func(args ...string) { p.git(mend[1], args...) }
	run("-c", "merge.conflictStyle=merge", "merge", "-s", "ours", mend[2])
	write(t, filepath.Join(mend[1], "README.md"), "resolved\n")
	if _, err := ipc.Call(t.Context(), s.Client, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: r.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	r = composed(t, s, r.UUID.String(), runEnded)
	if c = nodeOf(t, &r, "c"); c.State != "succeeded" {
		t.Fatalf("%+v", c)
	}
	if b, _ := os.ReadFile(filepath.Join(treeDir(t, s, c), "README.md")); string(b) != "resolved\n" {
		t.Errorf("c has %q", b)
	}
}

func TestANodeResolvesAConflictIfItIsDeclaredTo(t *testing.T) {
	var told sync.Map
	s, p := treeTest(t, doesAsTold(&told))
	r := upIn(t, s, p, strings.Replace(clashFlow, "%s", "{conflicts: resolve}", 1))
	c := nodeOf(t, &r, "c") // its first attempt has only looked
	if c.State != "succeeded" || c.Attempt != 2 {
		t.Fatalf("%+v", c)
	}
	text, _ := told.Load("c")
	if s := text.(string); !strings.Contains(s, "does not merge") || !strings.Contains(s, "it has left marks of conflicts in README.md") {
		t.Errorf("it was told %q", s)
	}
	if m, err := ipc.Call(t.Context(), s.Client, ipc.Merge, ipc.MergeRequest{Target: c.UUID.String()}); err != nil || !m.Forward {
		t.Fatal(m, err)
	}
	if b, _ := os.ReadFile(filepath.Join(p.dir, "README.md")); string(b) != "both\n" {
		t.Errorf("the branch has %q", b)
	}
}

// Without marks the node could not know of the other side.
func TestANodeDoesNotResolveWhatGitDoesNotMark(t *testing.T) {
	var told sync.Map
	s, p := treeTest(t, doesAsTold(&told))
	r := upIn(t, s, p, `
  a: {intent: "do a: head -c 99 /dev/zero > README.md", worktree: true}
  b: {intent: "do b: rm README.md", worktree: true}
  c: {depends_on: [a, b], intent: "do c: true", retries: {max: 2, backoff: {initial: 1ms}}, worktree: {conflicts: resolve}}
`)
	c := nodeOf(t, &r, "c")
	if c.State != "failed" || c.Kind != "conflict" || !slices.Equal(c.Files, []string{"README.md"}) || c.Attempt != 1 || !strings.Contains(c.Why, "git writes no marks into README.md") ||
		!strings.Contains(c.Why, "resolve it with: git -C") {
		t.Fatalf("%+v", c)
	}
	if _, started := told.Load("c"); started {
		t.Error("the node was started")
	}
}

func TestWorkThatIsGoneOrHalfDoneEndsInAClearFailure(t *testing.T) {
	var told sync.Map
	s, p := treeTest(t, doesAsTold(&told))
	r := upIn(t, s, p, `
  a: {intent: "do a: echo a > a.txt", worktree: true}
  stop: {depends_on: [a], intent: "do stop: true", output: {schema: {type: array}}}
  c: {depends_on: [stop, a], intent: "do c: true", worktree: true}
`)
	again := func() *ipc.ComposeNode {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: r.UUID.String(), Node: "c", Env: s.Env}); err == nil {
			t.Fatal("c was done again although stop has failed")
		}
		return nodeOf(t, &r, "c")
	}
	if c := again(); c.State != "skipped" {
		t.Errorf("%+v", c)
	}
	tree := treeDir(t, s, nodeOf(t, &r, "a"))
	next := upIn(t, s, p, `
  a: {intent: "do a2: echo a > a.txt; git checkout -q -b side; echo 1 > f; git add f; git commit -qm 1; git checkout -q -; echo 2 > f; git add f; git commit -qm 2; git merge -q side; true", worktree: true}
  c: {depends_on: [a], intent: "do c2: true", worktree: true}
`)
	if c := nodeOf(t, &next, "c"); c.State != "failed" || !strings.Contains(c.Why, "its work cannot be taken") || !strings.Contains(c.Why, "half-way") {
		t.Errorf("half a merge in the work of a: %+v", c)
	}
	a := nodeOf(t, &next, "a")
	dir := treeDir(t, s, a)
	p.git(dir, "merge", "--abort")
	if _, err := ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, ipc.RemoveWorktreeRequest{Target: a.UUID.String()}); err != nil {
		t.Fatal(err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: next.UUID.String(), Env: s.Env}); err != nil {
		t.Fatal(err)
	}
	next = composed(t, s, next.UUID.String(), runEnded)
	if c := nodeOf(t, &next, "c"); c.State != "failed" || !strings.Contains(c.Why, "--node a") {
		t.Errorf("the work tree of a is gone: %+v", c)
	}
	_ = tree
}

func TestAMergeOfNodesThatAKillCutsOffIsWholeOrNotThere(t *testing.T) {
	var told sync.Map
	model := doesAsTold(&told)
	s, p := treeTest(t, model)
	for i := range soak.Number(t, "kills in a merge of nodes", "kills", 3, 60) {
		name := "k" + types.NewUUID().String()[:8]
		up, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{Name: name, Cwd: p.dir, Env: s.Env, Text: strings.ReplaceAll(`
provider: anthropic
model: fake
agents:
  a: {intent: "do aNAME: echo a > a.txt", worktree: true}
  b: {intent: "do bNAME: echo b > b.txt", worktree: true}
  c: {depends_on: [a, b], intent: "do cNAME: ls", worktree: true}
`, "NAME", name)})
		if err != nil {
			t.Fatal(err)
		}
		composed(t, s, up.UUID.String(), func(r ipc.ComposeRun) bool { return r.Counts["succeeded"] >= 2 })
		<-time.After(time.Duration(i*7%40) * time.Millisecond) // somewhere in what follows
		s.Kill()
		s.Start()
		s.Settle()
		_, _ = ipc.Call(t.Context(), s.Client, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: up.UUID.String(), Env: s.Env}) // the start may have let it go on already
		r := composed(t, s, up.UUID.String(), runEnded)
		c := nodeOf(t, &r, "c")
		if r.Exit.Code != 0 || c.State != "succeeded" {
			t.Fatalf("%d: %+v", i, r)
		}
		dir := treeDir(t, s, c)
		for _, f := range []string{"a.txt", "b.txt"} {
			if b, _ := os.ReadFile(filepath.Join(dir, f)); strings.TrimSpace(string(b)) != f[:1] {
				t.Errorf("%d: c has %q in %s", i, b, f)
			}
		}
		if st := p.git(dir, "status", "--porcelain"); st != "" {
			t.Errorf("%d: c is left with %s", i, st)
		}
	}
	all, err := ipc.Call(t.Context(), s.Client, ipc.ListWorktrees, ipc.WorktreesRequest{})
	if err != nil || len(all.Worktrees)%3 != 0 {
		t.Errorf("%d work trees, %v", len(all.Worktrees), err)
	}
}
