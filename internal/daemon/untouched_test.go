package daemon_test

import (
	"crypto/sha256"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// repositoryNow is what of a repository nobody but its user may change.
func repositoryNow(t *testing.T, p *project) map[string]string {
	t.Helper()
	out := map[string]string{
		"status": p.git(p.dir, "--no-optional-locks", "status", "--porcelain", "--ignored"),
		"refs":   p.git(p.dir, "for-each-ref"),
		"trees":  p.git(p.dir, "worktree", "list", "--porcelain"),
	}
	for _, at := range []string{"config", "info", "hooks"} {
		err := filepath.WalkDir(filepath.Join(p.dir, ".git", at), func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			b, err := os.ReadFile(path)
			out[path] = fmt.Sprintf("%x", sha256.Sum256(b))
			return err
		})
		if err != nil && !os.IsNotExist(err) {
			t.Fatal(err)
		}
	}
	return out
}

// TestThirtyRunsLeaveTheRepositoryAsItWas has agents that work in work trees of their own, with work and without, are forked, rewound, killed with
// the daemon, diffed and removed, beside files of the user that nobody has committed.
func TestThirtyRunsLeaveTheRepositoryAsItWas(t *testing.T) {
	soak.Turn(t)
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply {
		_, told := r.LastResult()
		switch says := r.LastUser(); {
		case told && len(r.Messages) > 4:
			return llmtest.Reply{Text: "done"}
		case strings.Contains(says, "write"):
			return tool("shell", fmt.Sprintf(`{"command":"mkdir -p .claude/commands && echo %d >>work.txt && echo x >.claude/commands/deploy.md"}`, len(r.Messages)))
		case strings.Contains(says, "commit"):
			return tool("shell", fmt.Sprintf(`{"command":"echo %d >>committed.txt && git add -A && git -c user.name=a -c user.email=a@b commit -qm work"}`, len(r.Messages)))
		}
		return tool("shell", `{"command":"true"}`)
	})
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := newProject(t, s)
	write(t, filepath.Join(p.dir, ".env.local"), "KEY=secret\n")
	write(t, filepath.Join(p.dir, ".git", "info", "exclude"), "# mine\n*.mine\n")
	write(t, filepath.Join(p.dir, "x.mine"), "ignored\n")
	p.git(p.dir, "status")
	before := repositoryNow(t, p)

	var all []ipc.SpawnResponse
	runs := soak.Number(t, "RNIX_UNTOUCHED_RUNS", "runs of agents in one repository", 12, 30) - 3 // and three forks
	for i := range runs {
		r := ipc.SpawnRequest{Intent: []string{"look", "write", "commit"}[i%3], ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: p.dir, Worktree: &ipc.WorktreeRequest{}}
		if i%9 == 0 {
			r.Worktree = nil // in the user's own: it looks only
		}
		all = append(all, s.Spawn(r))
	}
	for _, a := range all[:runs*3/4] {
		s.Wait(a.PID)
	}
	s.Kill()
	s.Start()
	s.Settle()
	for _, a := range all {
		_, _ = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: a.UUID.String()}) // it may have ended
		for d := (ipc.ProcDetail{}); ; {
			var err error
			if d, err = ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: a.UUID.String()}); err != nil {
				t.Fatal(err)
			}
			if d.State == "dead" || d.State == "zombie" {
				break
			}
			s.Wait(d.PID)
		}
	}
	var removed []types.UUID
	for i, a := range all[1:4] { // one that looks, one that writes, one that commits
		one := 1
		f, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: a.UUID.String(), Fork: true, FromStep: &one})
		if err != nil {
			t.Fatalf("fork %d: %v", i, err)
		}
		s.Wait(f.PID)
		removed = append(removed, f.UUID)
	}
	for _, a := range all {
		removed = append(removed, a.UUID)
	}
	for i, id := range removed {
		if _, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, ipc.DiffRequest{Target: id.String()}); err != nil {
			t.Errorf("diff of %d: %v", i, err)
		}
		if _, err := ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, ipc.RemoveWorktreeRequest{Target: id.String()}); err != nil && types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("removal of %d: %v", i, err)
		}
	}
	after := repositoryNow(t, p)
	var work, others []string
	for l := range strings.Lines(after["refs"]) {
		if strings.Contains(l, "\trefs/heads/rnix/") {
			work = append(work, l)
		} else {
			others = append(others, l)
		}
	}
	after["refs"] = strings.TrimSpace(strings.Join(others, ""))
	if d := cmp.Diff(before, after); d != "" {
		t.Errorf("what is the user's has changed (-before +after):\n%s", d)
	}
	for _, l := range work {
		branch := strings.Fields(l)[2]
		if n := strings.TrimSpace(p.git(p.dir, "rev-list", "--count", branch, "--not", "--exclude="+strings.TrimPrefix(branch, "refs/heads/"), "--branches")); n == "0" {
			t.Errorf("%s holds no work", branch)
		}
	}
	if len(work) == 0 { // the kill may have cut off some
		t.Errorf("of %d agents that have committed there is no branch", runs/3)
	}
	mirror := filepath.Join(s.Home, "mirror.git")
	p.git(p.dir, "init", "-q", "--bare", mirror)
	p.git(p.dir, "push", "-q", "--mirror", mirror)
	for l := range strings.Lines(p.git(mirror, "rev-list", "--objects", "--all")) {
		if strings.Contains(l, ".env.local") || strings.Contains(l, "work.txt") || strings.Contains(l, "deploy.md") {
			t.Errorf("a push of everything sends %s", l)
		}
	}
}
