package daemon_test

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// toolCall is a reply that calls a tool.
func toolCall(name string, input any) llmtest.ToolCall {
	b, err := json.Marshal(input)
	if err != nil {
		panic(err)
	}
	return llmtest.ToolCall{Name: name, Input: string(b)}
}

func results(r llmtest.Request) (n int) {
	for _, m := range r.Messages {
		n += len(m.Results)
	}
	return n
}

// treeTest is a daemon with a model of its own, and a repository.
func treeTest(t *testing.T, model func(llmtest.Request) llmtest.Reply) (*testenv.System, *project) {
	_, api := llmtest.NewAPI(t, model)
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+api)
	return s, newProject(t, s)
}

// composed waits for a run of a workflow.
func composed(t *testing.T, s *testenv.System, target string, ok func(ipc.ComposeRun) bool) ipc.ComposeRun {
	t.Helper()
	var r ipc.ComposeRun
	var err error
	there := testenv.Within(3*time.Minute, func() bool {
		r, err = ipc.Call(t.Context(), s.Client, ipc.ComposeStatus, ipc.TargetRequest{Target: target})
		return err == nil && ok(r)
	})
	if !there {
		t.Fatalf("never: %+v, %v", r, err)
	}
	return r
}

func runEnded(r ipc.ComposeRun) bool { return r.Exit != nil }

const treeFlow = `provider: anthropic
model: fake
agents:
  a: {intent: "do a", worktree: true}
  b: {intent: "do b", worktree: true, retries: {max: 1, backoff: {initial: 10ms}}}
`

func TestNodesWorkInTreesOfTheirOwnAndARetryBeginsAnew(t *testing.T) {
	var mu sync.Mutex
	tries := 0
	s, p := treeTest(t, func(r llmtest.Request) llmtest.Reply {
		is := regexp.MustCompile(`do ([ab])`).FindStringSubmatch(r.LastUser())
		for _, m := range r.Messages {
			if is == nil {
				is = regexp.MustCompile(`do ([ab])`).FindStringSubmatch(m.Text)
			}
		}
		if results(r) == 0 {
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{toolCall("shell", map[string]string{"command": "cat *.txt; echo " + is[1] + " >> " + is[1] + ".txt"})}}
		}
		mu.Lock()
		defer mu.Unlock()
		if is[1] == "b" {
			if tries++; tries == 1 {
				return llmtest.Reply{Status: 400, Text: "not today"}
			}
		}
		return llmtest.Reply{Text: "done"}
	})
	up, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{Name: "w", Text: treeFlow, Cwd: p.dir, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	r := composed(t, s, up.UUID.String(), runEnded)
	if r.Exit.Code != 0 {
		t.Fatalf("%+v", r)
	}
	head := p.git(p.dir, "rev-parse", "HEAD")
	want := map[string]string{"a": "rnix/w-a", "b": "rnix/w-b-2"}
	for _, n := range r.Nodes {
		if n.Branch != want[n.Name] {
			t.Errorf("%s works on %q", n.Name, n.Branch)
		}
		tree, err := ipc.Call(t.Context(), s.Client, ipc.ShowWorktree, ipc.TargetRequest{Target: n.UUID.String()})
		if err != nil || len(tree.Files) != 1 || tree.Base != head {
			t.Errorf("%s: %+v, %v", n.Name, tree, err)
			continue
		}
		if b, _ := os.ReadFile(filepath.Join(tree.Dir, n.Name+".txt")); string(b) != n.Name+"\n" {
			t.Errorf("%s has %q: it did not begin anew", n.Name, b)
		}
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Merge, ipc.MergeRequest{Target: n.UUID.String()}); err != nil {
			t.Errorf("merge %s: %v", n.Name, err)
		}
	}
	if got := p.git(p.dir, "ls-files"); !strings.Contains(got, "a.txt\nb.txt") {
		t.Errorf("after the merges there is %q", got)
	}
	all, err := ipc.Call(t.Context(), s.Client, ipc.ListWorktrees, ipc.WorktreesRequest{})
	if err != nil || len(all.Worktrees) != 3 { // that of the attempt that failed is there, with its work
		t.Errorf("%d work trees, %v", len(all.Worktrees), err)
	}
	if _, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{Name: "v", File: "w.yaml", Text: treeFlow, Cwd: s.Work, Env: s.Env}); err == nil || !strings.Contains(err.Error(), "w.yaml:4: a: ") || !strings.Contains(err.Error(), "no git repository") {
		t.Errorf("outside of a repository: %v", err)
	}
}

func TestANodeWithAWorkTreeGoesOnInItAfterACrash(t *testing.T) {
	gate := make(chan struct{})
	s, p := treeTest(t, func(r llmtest.Request) llmtest.Reply {
		switch results(r) {
		case 0:
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{toolCall("shell", map[string]string{"command": "echo one > one.txt"})}}
		case 1:
			select {
			case <-gate:
			default:
				return llmtest.Reply{Hang: true}
			}
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{toolCall("shell", map[string]string{"command": "cat one.txt; echo two > two.txt"})}}
		}
		return llmtest.Reply{Text: "done"}
	})
	up, err := ipc.Call(t.Context(), s.Client, ipc.ComposeUp, ipc.ComposeUpRequest{Name: "w", Text: "provider: anthropic\nmodel: fake\nagents:\n  a: {intent: go, worktree: {branch: topic}}\n", Cwd: p.dir, Env: s.Env})
	if err != nil {
		t.Fatal(err)
	}
	r := composed(t, s, up.UUID.String(), func(r ipc.ComposeRun) bool { return r.Nodes[0].Step == 2 })
	s.Kill()
	close(gate)
	s.Start()
	s.Settle()
	if _, err := ipc.Call(t.Context(), s.Client, ipc.ComposeResume, ipc.ComposeResumeRequest{Target: up.UUID.String(), Env: s.Env}); err != nil {
		t.Log(err) // the start may have let it go on already
	}
	end := composed(t, s, up.UUID.String(), runEnded)
	if end.Exit.Code != 0 || end.Nodes[0].UUID != r.Nodes[0].UUID || end.Nodes[0].Branch != "topic" {
		t.Errorf("%+v", end)
	}
	tree, err := ipc.Call(t.Context(), s.Client, ipc.ShowWorktree, ipc.TargetRequest{Target: end.Nodes[0].UUID.String()})
	if err != nil || len(tree.Files) != 2 {
		t.Errorf("%+v, %v", tree, err)
	}
}

func TestChildrenCanHaveWorkTreesOfTheirOwnAndTheirParentReadsThem(t *testing.T) {
	var mu sync.Mutex
	told := map[string]string{}
	hold := make(chan struct{})
	s, p := treeTest(t, func(r llmtest.Request) llmtest.Reply {
		first := r.Messages[0].Text
		kid := regexp.MustCompile(`kid (\d)`).FindStringSubmatch(first)
		if kid != nil {
			if results(r) == 0 {
				return llmtest.Reply{ToolCalls: []llmtest.ToolCall{toolCall("shell", map[string]string{"command": "echo " + kid[1] + " > kid.txt; git rev-parse --abbrev-ref HEAD"})}}
			}
			select {
			case <-hold:
				return llmtest.Reply{Text: "kid " + kid[1] + " is done"}
			default:
				return llmtest.Reply{Hang: true}
			}
		}
		mu.Lock()
		defer mu.Unlock()
		for _, m := range r.Messages {
			for _, x := range m.Results {
				told[x.ID] = x.Text
			}
		}
		switch results(r) {
		case 0:
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{
				{ID: "c1", Name: "spawn", Input: `{"intent":"kid 1","worktree":true}`}, {ID: "c2", Name: "spawn", Input: `{"intent":"kid 2","worktree":true}`}}}
		case 2:
			dir := regexp.MustCompile(`Its work tree is (\S+),`).FindStringSubmatch(told["c1"])
			if dir == nil {
				return llmtest.Reply{Text: "nobody says where it is: " + told["c1"]}
			}
			return llmtest.Reply{ToolCalls: []llmtest.ToolCall{{ID: "c3", Name: "read_file", Input: fmt.Sprintf(`{"path":%q}`, dir[1]+"/kid.txt")}}}
		}
		return llmtest.Reply{Text: "read: " + told["c3"]}
	})
	run := s.Spawn(ipc.SpawnRequest{Intent: "lead", ProcSpec: types.ProcSpec{Provider: "anthropic", Model: "fake", Name: "lead"}, Cwd: p.dir})
	var all ipc.WorktreesResponse
	var err error
	there := testenv.Within(3*time.Minute, func() bool { // both have written
		all, err = ipc.Call(t.Context(), s.Client, ipc.ListWorktrees, ipc.WorktreesRequest{})
		n := 0
		for _, w := range all.Worktrees {
			n += len(w.Files)
		}
		return err == nil && n == 2
	})
	if !there {
		t.Fatalf("%+v, %v", all, err)
	}
	if len(all.Worktrees[0].Overlaps) != 1 || all.Worktrees[0].Repo != p.dir {
		t.Errorf("%+v", all.Worktrees)
	}
	s.Kill()
	close(hold)
	s.Start()
	s.Settle()
	if _, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: run.UUID.String(), Env: s.Env}); err != nil {
		t.Log(err) // the start may have let it go on already
	}
	w, err := ipc.Call(t.Context(), s.Client, ipc.Wait, ipc.WaitRequest{Target: run.UUID.String(), TimeoutMs: 180_000})
	if err != nil || !strings.HasPrefix(w.Result, "read: ") || !strings.Contains(w.Result, "1") {
		t.Fatalf("%+v, %v", w, err)
	}
	mu.Lock()
	defer mu.Unlock()
	for i, id := range []string{"c1", "c2"} {
		if text := told[id]; !strings.Contains(text, fmt.Sprintf("kid %d is done", i+1)) || !strings.Contains(text, "on branch rnix/") || !strings.Contains(text, "from main") {
			t.Errorf("%s: %q", id, text)
		}
	}
	all, err = ipc.Call(t.Context(), s.Client, ipc.ListWorktrees, ipc.WorktreesRequest{})
	if err != nil || len(all.Worktrees) != 2 || all.Worktrees[0].Branch == all.Worktrees[1].Branch {
		t.Errorf("after the crash: %+v, %v", all, err)
	}
	if got := p.git(p.dir, "status", "--porcelain"); got != "" {
		t.Errorf("the children have changed the parent's files: %s", got)
	}
}
