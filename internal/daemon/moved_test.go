package daemon_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/drivers/llm/llmtest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/types"
)

// moveData renames the data directory of a system that is stopped, and starts it there.
func moveData(t *testing.T, s *testenv.System) (old string) {
	t.Helper()
	old = s.Data
	s.Data += "-moved"
	if err := os.Rename(old, s.Data); err != nil {
		t.Fatal(err)
	}
	for i, kv := range s.Env {
		if strings.HasPrefix(kv, "RNIX_DATA_DIR=") {
			s.Env[i] = "RNIX_DATA_DIR=" + s.Data
		}
	}
	return old
}

// A data directory that was renamed is used where it is: forks and processes with git work trees are resumed in the new
// place, and their work is compared, merged and removed there, also when something else has the old name now.
func TestADataDirectoryThatWasRenamedKeepsForksAndWorkTrees(t *testing.T) {
	for _, taken := range soak.Pick(t, "whether something has the old name", []bool{true}, []bool{true, false}) {
		t.Run(fmt.Sprint("the old name is taken: ", taken), func(t *testing.T) {
			s := testenv.New(t, "RNIX_DAEMON_AUTO_RESUME=false")
			p := newProject(t, s)
			write(t, filepath.Join(p.dir, "sub", "s.txt"), "s\n")
			p.git(p.dir, "add", "-A")
			p.git(p.dir, "commit", "-qm", "sub")
			plain := filepath.Join(s.Work, "plain")
			write(t, filepath.Join(plain, "a.txt"), "a\n")

			tree := s.Spawn(ipc.SpawnRequest{Intent: "run `echo one >one.txt`", Cwd: filepath.Join(p.dir, "sub"), ProcSpec: types.ProcSpec{Name: "tree"}, Worktree: &ipc.WorktreeRequest{}})
			second := s.Spawn(ipc.SpawnRequest{Intent: "run `echo kept >kept.txt`", Cwd: p.dir, ProcSpec: types.ProcSpec{Name: "second"}, Worktree: &ipc.WorktreeRequest{}})
			inGit := s.Spawn(ipc.SpawnRequest{Intent: "run `echo g >g.txt`", Cwd: filepath.Join(p.dir, "sub"), ProcSpec: types.ProcSpec{Name: "in-git"}})
			inPlain := s.Spawn(ipc.SpawnRequest{Intent: "run `echo f >f.txt`", Cwd: plain, ProcSpec: types.ProcSpec{Name: "in-plain"}})
			for _, w := range []types.PID{tree.PID, second.PID, inGit.PID, inPlain.PID} {
				s.Wait(w)
			}
			fork := func(of types.UUID, name string) ipc.ResumeResponse {
				t.Helper()
				r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: of.String(), Fork: true, Name: name, NewInput: "run `echo fork >fork.txt`", Env: s.Env})
				if err != nil {
					t.Fatal(err)
				}
				s.Wait(r.PID)
				return r
			}
			forks := []ipc.ResumeResponse{fork(tree.UUID, "tree-fork"), fork(inGit.UUID, "git-fork"), fork(inPlain.UUID, "plain-fork")}
			s.Stop()
			old := moveData(t, s)
			if taken {
				for _, f := range forks {
					write(t, filepath.Join(f.WorkDir, "theirs.txt"), "not ours\n")
				}
				write(t, filepath.Join(tree.Worktree.Dir, "theirs.txt"), "not ours\n")
			}
			s.Start()
			s.Settle()
			if r, err := ipc.Call(t.Context(), s.Client, ipc.Fsck, ipc.FsckRequest{}); err != nil || r.Errors > 0 || len(r.Findings) > 0 {
				t.Errorf("fsck finds %+v, %v", r.Findings, err)
			}

			here := func(dir string) string { return s.Data + strings.TrimPrefix(dir, old) }
			resume := func(id types.UUID, dir string) {
				t.Helper()
				r, err := ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: id.String(), NewInput: "run `pwd >>pwd.txt; git status --short >status.txt`", Env: s.Env})
				if err != nil {
					t.Fatalf("resume %s: %v", dir, err)
				}
				if r.WorkDir != here(dir) {
					t.Errorf("it works in %s, want %s", r.WorkDir, here(dir))
				}
				s.Wait(r.PID)
				if b, err := os.ReadFile(filepath.Join(here(dir), "pwd.txt")); err != nil || strings.TrimSpace(string(b)) != here(dir) {
					t.Errorf("it ran in %q, %v", b, err)
				}
			}
			treeDir := filepath.Join(tree.Worktree.Dir, "sub")
			resume(tree.UUID, treeDir)
			for _, f := range forks {
				resume(f.UUID, f.WorkDir)
			}
			if got := p.git(here(tree.Worktree.Dir), "status", "--short"); !strings.Contains(got, "sub/one.txt") {
				t.Errorf("git status in the work tree: %q", got)
			}
			for _, d := range strings.Fields(p.git(p.dir, "worktree", "list", "--porcelain")) {
				if strings.HasPrefix(d, old+"/") {
					t.Errorf("git still knows %s", d)
				}
			}
			diff, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, ipc.DiffRequest{Target: tree.UUID.String(), Stat: true})
			if err != nil || !slices.ContainsFunc(diff.Files, func(c ipc.FileChange) bool { return c.Path == "sub/one.txt" }) {
				t.Errorf("diff: %+v, %v", diff.Files, err)
			}
			for _, f := range forks {
				diff, err := ipc.Call(t.Context(), s.Client, ipc.DiffFiles, ipc.DiffRequest{Target: f.UUID.String(), Stat: true})
				if err != nil || !slices.ContainsFunc(diff.Files, func(c ipc.FileChange) bool { return strings.HasSuffix(c.Path, "pwd.txt") }) {
					t.Errorf("diff of a fork: %+v, %v", diff.Files, err)
				}
			}
			again := fork(forks[1].UUID, "fork-of-fork") // whose snapshots name the old place
			if !strings.HasSuffix(again.WorkDir, "/sub") || !strings.HasPrefix(again.WorkDir, s.Data) {
				t.Errorf("a fork of a fork works in %s", again.WorkDir)
			}
			list, err := ipc.Call(t.Context(), s.Client, ipc.ListWorktrees, ipc.WorktreesRequest{})
			if err != nil || len(list.Worktrees) < 3 {
				t.Fatalf("%+v, %v", list, err)
			}
			for _, w := range list.Worktrees {
				if w.Gone || w.Problem != "" || !strings.HasPrefix(w.Dir, s.Data+"/") {
					t.Errorf("work tree: %+v", w)
				}
			}
			m, err := ipc.Call(t.Context(), s.Client, ipc.Merge, ipc.MergeRequest{Target: second.UUID.String()})
			if err != nil {
				t.Fatalf("merge: %v", err)
			}
			if b, err := os.ReadFile(filepath.Join(p.dir, "kept.txt")); err != nil || string(b) != "kept\n" {
				t.Errorf("merged %+v: %q, %v", m, b, err)
			}
			for _, id := range []types.UUID{tree.UUID, second.UUID} {
				if _, err := ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, ipc.RemoveWorktreeRequest{Target: id.String()}); err != nil {
					t.Errorf("remove: %v", err)
				}
			}
			age(t, s, forks[2].UUID)
			if r := collect(t, s, ipc.GCRequest{Delete: true}); len(r.Deleted) == 0 {
				t.Errorf("the workspace of a fork that was deleted stays: %+v", r)
			}
			if _, err := os.Stat(here(tree.Worktree.Dir)); err == nil {
				t.Error("the work tree stays")
			}
			if taken {
				if b, err := os.ReadFile(filepath.Join(tree.Worktree.Dir, "theirs.txt")); err != nil || string(b) != "not ours\n" {
					t.Errorf("what has the old name was touched: %q, %v", b, err)
				}
			}
		})
	}
}

// What was at work when its daemon was killed goes on in the new place when its data directory was moved meanwhile.
func TestWhatWasAtWorkIsAutoResumedInADataDirectoryThatWasMoved(t *testing.T) {
	_, url := llmtest.NewAPI(t, func(r llmtest.Request) llmtest.Reply { return llmtest.Reply{Hang: true} })
	s := testenv.New(t, "ANTHROPIC_API_KEY=k", "ANTHROPIC_BASE_URL="+url)
	p := newProject(t, s)
	w := s.Spawn(ipc.SpawnRequest{Intent: "work", ProcSpec: types.ProcSpec{Model: "fake"}, Cwd: p.dir, Worktree: &ipc.WorktreeRequest{}})
	write(t, filepath.Join(w.Worktree.Dir, "half.txt"), "half done\n")
	s.Kill()
	old := moveData(t, s)
	s.Start()
	s.Settle()
	now := s.Data + strings.TrimPrefix(w.Worktree.Dir, old)
	until(t, "it is resumed", func() bool {
		d, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: w.UUID.String()})
		return err == nil && d.State == "running" && d.WorkDir == now
	})
	if got := p.git(now, "status", "--short"); !strings.Contains(got, "half.txt") {
		t.Errorf("git status in the work tree: %q", got)
	}
}
