package worktree

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"rnix/internal/plumbing"
)

// added makes a work tree of a clone, on a branch of its own.
func added(t *testing.T, m *Manager, clone, id string) string {
	t.Helper()
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: id, Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/" + id, BaseRef: "main"})
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestACloneIsThereAndIsGoneAfterwards(t *testing.T) {
	bare, _ := origin(t)
	m := manager(t, Options{})
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: bare, Branch: "main"})
	if err != nil {
		t.Fatal(err)
	}
	if b, err := os.ReadFile(filepath.Join(path, "README.md")); err != nil || string(b) != "hello\n" {
		t.Errorf("README.md: %q, %v", b, err)
	}
	for range 2 {
		if err := m.Teardown(t.Context(), "s"); err != nil || exists(path) {
			t.Fatalf("%v, exists: %v", err, exists(path))
		}
	}
}

func TestACloneCanBeginABranch(t *testing.T) {
	bare, _ := origin(t)
	m := manager(t, Options{})
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: bare, Branch: "agent/s", BaseRef: "main"})
	if err != nil || git(t, path, "symbolic-ref", "HEAD") != "refs/heads/agent/s" {
		t.Fatal(err)
	}
	if err := m.Teardown(t.Context(), "s"); err != nil {
		t.Fatal(err)
	}
}

func TestARestartedManagerKnowsWhatWasMade(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	path := added(t, m, clone, "s")
	again := manager(t, Options{ParentDir: m.ParentDir()})
	if p, err := again.Path("s"); p != path || err != nil {
		t.Fatalf("Path = %s, %v", p, err)
	}
	if err := again.Teardown(t.Context(), "s"); err != nil || exists(path) {
		t.Fatalf("Teardown: %v", err)
	}
	if list := git(t, clone, "worktree", "list"); strings.Contains(list, path) {
		t.Errorf("git still knows it: %s", list)
	}
	if entries, _ := os.ReadDir(filepath.Join(m.ParentDir(), StateDir)); len(entries) > 0 {
		t.Errorf("left: %v", entries)
	}
}

func TestSessionsOverAStaleCloneBeginAtTheNewTip(t *testing.T) {
	bare, clone := origin(t)
	tip := commitAt(t, bare, "main", "new.txt")
	m := manager(t, Options{})
	var all sync.WaitGroup
	for _, id := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} {
		all.Go(func() {
			path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: id, Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/" + id, BaseRef: "main"})
			if err != nil || !exists(filepath.Join(path, "new.txt")) {
				t.Errorf("%s: %s, %v", id, path, err)
				return
			}
			if r, err := m.Result(id); err != nil || r.BaseSHA != tip || !r.BaseFetched || r.BaseFetchDuration <= 0 {
				t.Errorf("%s: %+v, %v", id, r, err)
			}
		})
	}
	all.Wait()
	if up := git(t, clone, "for-each-ref", "--format=%(upstream)", "refs/heads/agent"); strings.TrimSpace(up) != "" {
		t.Errorf("branches follow %s", up)
	}
}

func TestABranchWithCommitsOfItsOwnIsNeverReset(t *testing.T) {
	_, clone := origin(t)
	git(t, clone, "checkout", "-q", "-b", "agent/s")
	write(t, filepath.Join(clone, "mine.txt"), "mine")
	git(t, clone, "add", ".")
	git(t, clone, "commit", "-qm", "mine")
	tip := git(t, clone, "rev-parse", "HEAD")
	git(t, clone, "checkout", "-q", "main")
	m := manager(t, Options{})
	path := added(t, m, clone, "s")
	if now := git(t, clone, "rev-parse", "agent/s"); now != tip || !exists(filepath.Join(path, "mine.txt")) {
		t.Errorf("the branch was at %s and is at %s", tip, now)
	}
	mustPark(t, m.Teardown(t.Context(), "s"), "on its branch only")
}

func TestABranchThatIsBehindIsBroughtForward(t *testing.T) {
	bare, clone := origin(t)
	git(t, clone, "branch", "agent/s")
	tip := commitAt(t, bare, "main", "new.txt")
	m := manager(t, Options{})
	added(t, m, clone, "s")
	if now := git(t, clone, "rev-parse", "agent/s"); now != tip {
		t.Errorf("it is at %s, want %s", now, tip)
	}
}

func TestABranchInUseIsWaitedFor(t *testing.T) {
	_, clone := origin(t)
	git(t, clone, "worktree", "add", "-q", "-b", "agent/s", "../other")
	freed := false
	m := manager(t, Options{RetryDelay: time.Millisecond, OwnershipProber: func(context.Context, string) (bool, error) {
		if !freed {
			freed = true
			git(t, clone, "worktree", "remove", "../other")
		}
		return true, nil
	}})
	added(t, m, clone, "s")
	if r, err := m.Result("s"); err != nil || r.Attempts != 2 {
		t.Errorf("%+v, %v", r, err)
	}
	_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "t", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/s", BaseRef: "main"})
	if err == nil || !strings.Contains(err.Error(), "after 3 attempts") || exists(filepath.Join(m.ParentDir(), "t")) {
		t.Errorf("a branch in use: %v", err)
	}
}

func TestAnExistingDirectoryIsNotTouched(t *testing.T) {
	bare, clone := origin(t)
	m := manager(t, Options{})
	mine := filepath.Join(m.ParentDir(), "s", "mine.txt")
	write(t, mine, "mine")
	for _, s := range []ProvisionSpec{{RepoURL: bare}, {Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "b", BaseRef: "main"}, {Strategy: StrategyEmpty}} {
		s.SessionID = "s"
		if _, err := m.Provision(t.Context(), s); !errors.Is(err, ErrWorkareaRootOccupied) || !exists(mine) {
			t.Errorf("%v: %v", s.Strategy, err)
		}
	}
	if err := m.Teardown(t.Context(), "s"); err != nil || !exists(mine) {
		t.Errorf("Teardown: %v", err)
	}
}

func TestTwoManagersMakeOneCheckout(t *testing.T) {
	_, clone := origin(t)
	dir := filepath.Join(t.TempDir(), "trees")
	errs := make([]error, 4)
	paths := make([]string, len(errs))
	var all sync.WaitGroup
	for i := range errs {
		m := manager(t, Options{ParentDir: dir})
		all.Go(func() {
			paths[i], errs[i] = m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/s", BaseRef: "main"})
		})
	}
	all.Wait()
	won := 0
	for i, err := range errs {
		if err == nil {
			won++
			if !exists(filepath.Join(paths[i], "README.md")) {
				t.Error("the winner's files are gone")
			}
		} else if !errors.Is(err, ErrWorkareaRootOccupied) {
			t.Errorf("a loser: %v", err)
		}
	}
	if won != 1 {
		t.Errorf("%d have won", won)
	}
}

func TestSpellingsOfAParentAreOneRepository(t *testing.T) {
	_, clone := origin(t)
	link := filepath.Join(t.TempDir(), "link")
	if err := os.Symlink(clone, link); err != nil {
		t.Fatal(err)
	}
	t.Chdir(filepath.Dir(clone))
	git(t, clone, "worktree", "add", "-q", "--detach", "../linked")
	want := filepath.Join(clone, ".git")
	write(t, filepath.Join(clone, "sub", "f"), "")
	for _, p := range []string{clone, link, "clone", clone + "/", filepath.Join(clone, "sub"), filepath.Join(filepath.Dir(clone), "linked"), want} {
		if got := plumbing.Repository(p); got != want {
			t.Errorf("plumbing.Repository(%s) = %s", p, got)
		}
	}
}

func TestWhatARepositoryNamesIsNotRun(t *testing.T) {
	bare, clone := origin(t)
	mark := filepath.Join(t.TempDir(), "ran")
	evil := filepath.Join(t.TempDir(), "evil")
	write(t, evil, "#!/bin/sh\necho \"$0 $*\" >>"+mark+"\ncat\n")
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, h := range []string{"post-checkout", "reference-transaction", "post-index-change", "pre-auto-gc"} {
		if err := os.Symlink(evil, filepath.Join(clone, ".git", "hooks", h)); err != nil {
			t.Fatal(err)
		}
	}
	for k, v := range map[string]string{"filter.evil.smudge": evil, "filter.evil.clean": evil, "core.fsmonitor": evil, "alias.status": "!" + evil, "alias.fetch": "!" + evil, "core.pager": evil} {
		git(t, clone, "config", k, v)
	}
	write(t, filepath.Join(clone, ".git", "info", "attributes"), "* filter=evil\n")
	m := manager(t, Options{})
	path := added(t, m, clone, "s")
	if b, _ := os.ReadFile(filepath.Join(path, "README.md")); string(b) != "hello\n" {
		t.Errorf("README.md: %q", b)
	}
	if err := m.Teardown(t.Context(), "s"); err != nil {
		t.Error(err)
	}
	if b, err := os.ReadFile(mark); err == nil {
		t.Errorf("these were run:\n%s", b)
	}
	for k, v := range map[string]string{"core.sshCommand": evil, "credential.helper": evil, "remote.origin.uploadpack": evil, "core.alternateRefsCommand": evil} {
		git(t, clone, "config", k, v)
		_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "x", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "x", BaseRef: "main"})
		if !errors.Is(err, ErrBaseFetch) || !strings.Contains(err.Error(), strings.ToLower(k)) {
			t.Errorf("%s: %v", k, err)
		}
		git(t, clone, "config", "--unset", k)
	}
	if b, err := os.ReadFile(mark); err == nil {
		t.Errorf("these were run:\n%s", b)
	}
	_ = bare
}

func TestACallerThatGivesUpEndsGit(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	started := filepath.Join(t.TempDir(), "started")
	if err := exec.Command("mkfifo", started).Run(); err != nil {
		t.Skip("needs mkfifo")
	}
	go func() { // ends when the child has opened the pipe; its end cancels the child
		if f, err := os.Open(started); err == nil {
			f.Close()
		}
		cancel()
	}()
	_, err := execute(ctx, nil, "sh", "-c", "echo >"+started+"; sleep 600 & wait")
	if err == nil || ctx.Err() == nil {
		t.Errorf("%v", err)
	}
}
