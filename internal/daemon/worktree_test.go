package daemon_test

import (
	"crypto/sha1"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"rnix/internal/plumbing/gittest"
	"rnix/internal/soak"
	"rnix/internal/testenv"
	"rnix/ipc"
	"rnix/runtime/worktree"
	"rnix/types"
)

// project is a git repository of the user's.
type project struct {
	t   *testing.T
	s   *testenv.System
	dir string
}

func newProject(t *testing.T, s *testenv.System) *project {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	const config = "[user]\n\tname = u\n\temail = u@localhost\n[init]\n\tdefaultBranch = main\n[protocol \"file\"]\n\tallow = always\n"
	write(t, filepath.Join(s.Home, ".gitconfig"), config)
	p := &project{t, s, filepath.Join(s.Work, "project")}
	write(t, filepath.Join(p.dir, "README.md"), "hello\n")
	write(t, filepath.Join(p.dir, ".gitignore"), "*.log\n")
	gittest.Commit(t, p.dir, config, func(args ...string) { p.git(p.dir, args...) })
	return p
}

func (p *project) git(dir string, args ...string) string {
	p.t.Helper()
	c := exec.Command("git", args...)
	c.Dir, c.Env = dir, p.s.Env
	out, err := c.CombinedOutput()
	if err != nil {
		p.t.Fatalf("git %q: %v: %s", args, err, out)
	}
	return strings.TrimSpace(string(out))
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// planted is a state of a work tree, and what must never be lost of it.
type planted struct {
	name  string
	spawn ipc.SpawnResponse
	texts []string
}

func (w *planted) dir() string { return w.spawn.Worktree.Dir }

// treeStates bring a work tree into each state in which work could be lost. text gives something that has to be found
// afterwards.
func treeStates(p *project, lib string, live func(dir string)) map[string]func(dir string, text func() string) {
	return map[string]func(dir string, text func() string){
		"clean":     func(string, func() string) {},
		"dirty":     func(d string, text func() string) { write(p.t, d+"/README.md", text()) },
		"untracked": func(d string, text func() string) { write(p.t, d+"/deep/new.txt", text()) },
		"ignored":   func(d string, text func() string) { write(p.t, d+"/my.log", text()) },
		"staged": func(d string, text func() string) {
			write(p.t, d+"/README.md", text())
			p.git(d, "add", "-A")
			write(p.t, d+"/README.md", text())
		},
		"unpushed": func(d string, text func() string) {
			write(p.t, d+"/c.txt", text())
			p.git(d, "add", "-A")
			p.git(d, "commit", "-qm", "c")
		},
		"detached": func(d string, text func() string) {
			p.git(d, "checkout", "-q", "--detach")
			write(p.t, d+"/c.txt", text())
			p.git(d, "add", "-A")
			p.git(d, "commit", "-qm", "c")
		},
		"left behind": func(d string, text func() string) {
			for range 2 {
				write(p.t, d+"/c.txt", text())
				p.git(d, "add", "-A")
				p.git(d, "commit", "-qm", "c")
				p.git(d, "reset", "-q", "--hard", "HEAD~1")
			}
		},
		"submodule": func(d string, text func() string) {
			p.git(d, "submodule", "add", "-q", lib, "sub")
			write(p.t, d+"/sub/s.txt", text())
			p.git(d+"/sub", "add", "-A")
			p.git(d+"/sub", "commit", "-qm", "s")
			write(p.t, d+"/sub/more.txt", text())
		},
		"live cwd": func(d string, text func() string) { write(p.t, d+"/new.txt", text()); live(d) },
		"locked":   func(d string, text func() string) { write(p.t, d+"/new.txt", text()); p.git(d, "worktree", "lock", d) },
		"removed by hand": func(d string, text func() string) {
			p.git(d, "checkout", "-q", "--detach")
			write(p.t, d+"/c.txt", text())
			p.git(d, "add", "-A")
			p.git(d, "commit", "-qm", "c")
			write(p.t, d+"/staged.txt", text())
			p.git(d, "add", "-A")
			if err := os.RemoveAll(d); err != nil {
				p.t.Fatal(err)
			}
		},
	}
}

// stays are the states in which nothing may remove a work tree.
var stays = []string{"submodule", "live cwd", "locked"}

// lost returns what is not in the directory of a work tree, and what git does not keep: neither a reference, nor a log or
// an index of a work tree that there is.
func (p *project) lost(list []*planted) (lost []string) {
	p.t.Helper()
	have := map[string]bool{}
	for _, l := range strings.Split(p.git(p.dir, "rev-list", "--objects", "--all", "--reflog", "--indexed-objects"), "\n") {
		have[strings.Fields(l)[0]] = true
	}
	stores, err := filepath.Glob(filepath.Join(p.s.Data, "snapshots", "stores", "*", "repo.git"))
	if err != nil {
		p.t.Fatal(err)
	}
	for _, dir := range stores {
		for l := range strings.Lines(p.git(p.dir, "--git-dir="+dir, "rev-list", "--objects", "--all")) {
			have[strings.Fields(l)[0]] = true
		}
	}
	for _, w := range list {
		files := ""
		_ = filepath.WalkDir(w.dir(), func(path string, e fs.DirEntry, err error) error { // what is not there is looked for elsewhere
			if err == nil && e.Type().IsRegular() {
				b, _ := os.ReadFile(path)
				files += string(b)
			}
			return nil
		})
		for _, text := range w.texts {
			blob := fmt.Sprintf("%x", sha1.Sum(fmt.Appendf(nil, "blob %d\x00%s", len(text), text))) // as "git hash-object"
			if !have[blob] && !strings.Contains(files, text) {
				lost = append(lost, w.name+": "+strings.TrimSpace(text))
			}
		}
	}
	return lost
}

func TestNoWorkInAWorkTreeIsLost(t *testing.T) {
	ends := []string{"exit", "kill", "crash"}
	for _, end := range ends {
		t.Run(end, func(t *testing.T) {
			s := testenv.New(t)
			configure(t, s, "config.yaml", "daemon: {auto_resume: false}\n")
			p := newProject(t, s)
			lib := filepath.Join(s.Work, "lib")
			write(t, filepath.Join(lib, "lib.txt"), "lib\n")
			p.git(lib, "init", "-q")
			p.git(lib, "add", "-A")
			p.git(lib, "commit", "-qm", "lib")
			s.Stop()
			s.Start()
			s.Settle()

			live := func(dir string) {
				c := exec.Command("sleep", "600")
				c.Dir = dir
				if err := c.Start(); err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
			}
			var all []*planted
			n, secrets := 0, time.Now().UnixNano()
			states := treeStates(p, lib, live)
			for _, cell := range soak.Cells(t, "states of work trees, and ends of their agents", slices.Sorted(maps.Keys(states)), ends) {
				if cell[1] != end {
					continue
				}
				name, plant := cell[0], states[cell[0]]
				begun, ready := filepath.Join(s.Dir, "begun-"+strings.ReplaceAll(name, " ", "")), filepath.Join(s.Dir, "go-"+strings.ReplaceAll(name, " ", ""))
				w := &planted{name: name}
				if err := syscall.Mkfifo(ready, 0o600); err != nil { // whoever reads it waits without doing anything
					t.Fatal(err)
				}
				w.spawn = s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprintf("run `cd /; touch %s; cat %s`", begun, ready), Cwd: p.dir, Worktree: &ipc.WorktreeRequest{}})
				until(t, "it works", func() bool { _, err := os.Stat(begun); return err == nil })
				plant(w.dir(), func() string {
					n++
					w.texts = append(w.texts, fmt.Sprintf("%s %d %d\n", name, secrets, n))
					return w.texts[len(w.texts)-1]
				})
				all = append(all, w)
				switch end {
				case "exit":
					write(t, ready, "")
					s.Wait(w.spawn.PID)
				case "kill":
					if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: w.spawn.UUID.String(), Signal: types.SIGKILL}); err != nil {
						t.Fatal(err)
					}
					s.Wait(w.spawn.PID)
				}
			}
			if end == "crash" {
				s.Kill()
				s.Start()
				s.Settle()
			}
			if lost := p.lost(all); len(lost) > 0 {
				t.Fatalf("after the end these are lost: %q", lost)
			}
			if list, err := ipc.Call(t.Context(), s.Client, ipc.ListWorktrees, ipc.WorktreesRequest{}); err != nil || len(list.Worktrees) != len(all) {
				t.Fatalf("%d are listed of %d, %v", len(list.Worktrees), len(all), err)
			}
			if end == "crash" { // they are suspended and will go on there
				for _, w := range all {
					req := ipc.RemoveWorktreeRequest{Target: w.spawn.UUID.String()}
					if _, err := ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, req); types.CodeOf(err) != types.ErrConflict {
						t.Errorf("%s: removed although it is suspended: %v", w.name, err)
					}
					req.Suspended = true
					if _, err := ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, req); (err != nil) != slices.Contains(stays, w.name) {
						t.Errorf("%s: asked to remove it: %v", w.name, err)
					}
				}
			}
			var ids []types.UUID
			for _, w := range all {
				ids = append(ids, w.spawn.UUID)
			}
			var r ipc.GCResponse
			if end != "crash" {
				age(t, s, ids...)
				r = collect(t, s, ipc.GCRequest{Delete: true})
			}
			if lost := p.lost(all); len(lost) > 0 {
				t.Fatalf("after gc these are lost: %q", lost)
			}
			for _, w := range all {
				_, err := os.Stat(w.dir())
				there, must := err == nil, slices.Contains(stays, w.name)
				if there != must {
					t.Errorf("%s: there after gc: %v; %+v", w.name, there, r.Skipped)
				}
			}
			p.git(p.dir, "gc", "-q", "--prune=now")
			if lost := p.lost(all); len(lost) > 0 {
				t.Errorf("after git's own collection these are lost: %q", lost)
			}
		})
	}
}

// Who resumes a process while its work tree is being removed is refused, or keeps the work tree: nothing works in a directory that is not there.
func TestAWorkTreeIsRemovedOrItsProcessResumedButNeverBoth(t *testing.T) {
	s := testenv.New(t)
	p := newProject(t, s)
	for n := range 4 {
		begun, ready := filepath.Join(s.Dir, fmt.Sprint("begun", n)), filepath.Join(s.Dir, fmt.Sprint("ready", n))
		if err := syscall.Mkfifo(ready, 0o600); err != nil { // whoever reads it waits without doing anything
			t.Fatal(err)
		}
		w := s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprintf("run `cd /; touch %s; cat %s`", begun, ready), Cwd: p.dir, Worktree: &ipc.WorktreeRequest{}})
		until(t, "it works", func() bool { _, err := os.Stat(begun); return err == nil })
		if _, err := ipc.Call(t.Context(), s.Client, ipc.Signal, ipc.SignalRequest{Target: w.UUID.String(), Signal: types.SIGKILL}); err != nil {
			t.Fatal(err)
		}
		s.Wait(w.PID)
		var removed, resumed error
		var both sync.WaitGroup
		both.Go(func() {
			_, removed = ipc.Call(t.Context(), s.Client, ipc.RemoveWorktree, ipc.RemoveWorktreeRequest{Target: w.UUID.String()})
		})
		var again ipc.ResumeResponse
		both.Go(func() {
			again, resumed = ipc.Call(t.Context(), s.Client, ipc.Resume, ipc.ResumeRequest{Target: w.UUID.String(), OnInDoubt: "retry"})
		})
		both.Wait()
		_, gone := os.Stat(w.Worktree.Dir)
		switch {
		case removed == nil && resumed == nil:
			// Else its call was known to be cut off, so that it had ended, and its work tree went after it.
			if now, err := ipc.Call(t.Context(), s.Client, ipc.GetProcDetail, ipc.TargetRequest{Target: w.UUID.String()}); err != nil || now.State != "dead" || strings.Contains(now.Result, "no such") {
				t.Errorf("it was resumed, and its work tree was removed (%v): %+v; it is %+v, %v", gone, again, now, err)
			}
		case removed == nil && (gone == nil || types.CodeOf(resumed) != types.ErrConflict && types.CodeOf(resumed) != types.ErrNotFound):
			t.Errorf("its work tree was removed: it is there: %v, and the resume says: %v", gone == nil, resumed)
		case removed != nil && (gone != nil || types.CodeOf(removed) != types.ErrConflict || resumed != nil):
			t.Errorf("its work tree stays (%v): %v, %v", removed, gone, resumed)
		}
	}
}

// TestAWorkTreeOfNobodyIsRemovedAtTheStart is about one whose process was never started, as a crash leaves it.
func TestAWorkTreeOfNobodyIsRemovedAtTheStart(t *testing.T) {
	s := testenv.New(t)
	p := newProject(t, s)
	s.Stop()
	plant := func() string {
		id := types.NewUUID().String()
		m, err := worktree.NewManager(worktree.Options{ParentDir: filepath.Join(s.Data, "worktrees", id)})
		if err != nil {
			t.Fatal(err)
		}
		dir, err := m.Provision(t.Context(), worktree.ProvisionSpec{SessionID: id, LeafName: "project", Strategy: worktree.StrategyWorktreeAdd, ParentRepoPath: p.dir,
			Branch: "rnix/" + id, BaseRef: "main", SkipBaseFetch: true})
		if err != nil {
			t.Fatal(err)
		}
		return dir
	}
	nobody, somebody := plant(), plant()
	write(t, filepath.Join(somebody, "mine.txt"), "mine")
	s.Start()
	s.Settle()
	if _, err := os.Stat(filepath.Dir(nobody)); err == nil {
		t.Error("it is still there")
	}
	if _, err := os.Stat(filepath.Join(somebody, "mine.txt")); err != nil {
		t.Error("work is lost")
	}
	if list := p.git(p.dir, "worktree", "list"); strings.Contains(list, nobody) || !strings.Contains(list, somebody) {
		t.Errorf("git knows %s", list)
	}
	st, err := ipc.Call(t.Context(), s.Client, ipc.DaemonStatus, ipc.Empty{})
	if err != nil || !strings.Contains(strings.Join(st.Recovered, "\n"), "mine.txt") {
		t.Errorf("nobody is told: %q, %v", st.Recovered, err)
	}
}

func TestAgentsNeitherMergeNorRemoveWorkTrees(t *testing.T) {
	s := testenv.New(t)
	p := newProject(t, s)
	w := s.Spawn(ipc.SpawnRequest{Intent: "run `echo x >x`", Cwd: p.dir, ProcSpec: types.ProcSpec{Name: "tree"}, Worktree: &ipc.WorktreeRequest{}})
	s.Wait(w.PID)
	for _, name := range []string{ipc.Merge.Name, ipc.RemoveWorktree.Name} {
		r := s.Wait(s.Spawn(ipc.SpawnRequest{Intent: fmt.Sprintf("run `curl -s --unix-socket %s http://d/v1/%s -d '{\"target\":\"tree\"}'`", s.Socket(), name)}).PID)
		if !strings.Contains(r.Result, "PERMISSION") {
			t.Errorf("%s: %s", name, r.Result)
		}
	}
	if _, err := os.Stat(w.Worktree.Dir); err != nil || p.git(p.dir, "log", "--format=%s") != "first" {
		t.Errorf("%v", err)
	}
}

func TestAStartThatFailsLeavesNoWorkTree(t *testing.T) {
	s := testenv.New(t)
	p := newProject(t, s)
	if _, err := s.TrySpawn(ipc.SpawnRequest{Intent: "run `true`", Cwd: p.dir, MCP: []string{"nowhere"}, Worktree: &ipc.WorktreeRequest{}}); err == nil {
		t.Fatal("it was started")
	}
	if _, err := s.TrySpawn(ipc.SpawnRequest{Intent: "", Cwd: p.dir, Worktree: &ipc.WorktreeRequest{}}); err == nil {
		t.Fatal("it was started")
	}
	entries, _ := os.ReadDir(filepath.Join(s.Data, "worktrees"))
	if list := p.git(p.dir, "worktree", "list"); len(entries) > 0 || strings.Contains(list, "worktrees/") {
		t.Errorf("left: %v, %s", entries, list)
	}
}
