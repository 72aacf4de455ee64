package daemon_test

import (
	"encoding/json"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/drivers/llm/llmtest"
	"rnix/ipc"
	"rnix/types"
)

// TestAnAgentIsToldTheStateOfItsRepository says that the instructions of a run in a git repository end with its state, in each step the same, and in a run that
// continues soon, after a kill, too; that a fork elsewhere and a git worktree have their own; and that the request of a step is shown with it.
func TestAnAgentIsToldTheStateOfItsRepository(t *testing.T) {
	var mu sync.Mutex
	var sent []llmtest.Request
	s, p := treeTest(t, func(r llmtest.Request) llmtest.Reply {
		mu.Lock()
		sent = append(sent, r)
		mu.Unlock()
		if _, ok := r.LastResult(); ok || strings.Contains(r.Messages[len(r.Messages)-1].Text, "and now?") {
			return llmtest.Reply{Text: "done"}
		}
		return tool("list_files", `{}`)
	})
	// told returns what the models were told since it was called last, which is the same in each step.
	told := func() string {
		t.Helper()
		mu.Lock()
		defer mu.Unlock()
		if len(sent) == 0 {
			t.Fatal("no model was asked")
		}
		system := sent[0].System
		for _, r := range sent {
			if r.System != system {
				t.Errorf("told %q and %q", system, r.System)
			}
		}
		sent = nil
		return system
	}
	done := func(pid types.PID) {
		t.Helper()
		if w := s.Wait(pid); w.Result != "done" {
			t.Fatalf("%+v", w)
		}
	}
	write(t, filepath.Join(p.dir, "new\nfile"), "x")
	head := p.git(p.dir, "rev-parse", "--short", "HEAD")
	on := `the branch "main" was checked out at "` + head + `", `
	work := ipc.SpawnRequest{Intent: "look around", Cwd: p.dir, ProcSpec: types.ProcSpec{Model: "fake"}}
	first := s.Spawn(work)
	done(first.PID)
	mu.Lock()
	body := sent[0].Body
	mu.Unlock()
	begun := told()
	if !strings.Contains(begun, "\nYour working directory is "+p.dir+". Relative paths start there.\nIt is in a git repository. At ") || !strings.Contains(begun, on) ||
		!strings.Contains(begun, ` Untracked: 1 ("new\nfile"). `) || !strings.HasSuffix(begun, "All of it may have changed since.") {
		t.Errorf("told %q", begun)
	}
	raw, err := ipc.Call(t.Context(), s.Client, ipc.RawStep, ipc.RawStepRequest{Target: first.UUID.String(), Step: 1, ProjectRequest: ipc.ProjectRequest{Env: s.Env}})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(decoded(t, body), decoded(t, json.RawMessage(raw.Request))); diff != "" {
		t.Errorf("the request (-sent +made):\n%s", diff)
	}

	p.git(p.dir, "add", "-A")
	p.git(p.dir, "commit", "-qm", "later")
	s.Kill()
	s.Start()
	s.Settle()
	resume := func(req ipc.ResumeRequest) ipc.ResumeResponse {
		t.Helper()
		req.Target, req.NewInput = first.UUID.String(), "and now?"
		r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, req)
		if err != nil {
			t.Fatal(err)
		}
		done(r.PID)
		return r
	}
	resume(ipc.ResumeRequest{})
	if got := told(); got != begun {
		t.Errorf("soon after it is told %q, first %q", got, begun)
	}
	resume(ipc.ResumeRequest{Fork: true, Cwd: t.TempDir()})
	if got := told(); !strings.HasSuffix(got, "Relative paths start there.") {
		t.Errorf("a fork outside of a repository is told %q", got)
	}
	resume(ipc.ResumeRequest{Fork: true})
	if got := told(); !strings.Contains(got, `HEAD was detached at "`) || !strings.Contains(got, `, "later". Nothing was changed, staged or untracked. `) {
		t.Errorf("a fork in its own directory is told %q", got)
	}
	now := work
	now.Worktree = &ipc.WorktreeRequest{}
	done(s.Spawn(now).PID)
	if got := told(); !strings.Contains(got, `the branch "rnix/`) || !strings.Contains(got, `"later". Nothing was changed, staged or untracked. This is your own git worktree; its work began at "`) ||
		!strings.Contains(got, `", which was "main".`) {
		t.Errorf("in its own git worktree it is told %q", got)
	}
	now = work
	now.DeniedDevices = []string{"/dev/shell", "/dev/workspace", "/dev/fs"}
	plain := work
	plain.Cwd = s.Work
	for _, req := range []ipc.SpawnRequest{now, plain} {
		s.Wait(s.Spawn(req).PID)
		if got := told(); !strings.HasSuffix(got, "Relative paths start there.") {
			t.Errorf("told %q", got)
		}
	}
}
