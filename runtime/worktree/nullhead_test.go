package worktree

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"rnix/internal/plumbing"
)

// half registers a work tree as git does at the beginning of an add: with a HEAD that is all zeros.
func half(t *testing.T, clone string) (finish func()) {
	t.Helper()
	dir := filepath.Join(clone, ".git", "worktrees", "witness")
	write(t, filepath.Join(dir, "HEAD"), strings.Repeat("0", 40)+"\n")
	write(t, filepath.Join(dir, "commondir"), "../..\n")
	write(t, filepath.Join(dir, "gitdir"), filepath.Join(filepath.Dir(clone), "witness", ".git")+"\n")
	return func() {
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	}
}

// TestNothingIsFetchedWhileAWorkTreeIsHalfRegistered has the git that is installed as its witness: it
// cannot fetch in that moment, so a fetch that began in it would be an error.
func TestNothingIsFetchedWhileAWorkTreeIsHalfRegistered(t *testing.T) {
	bare, clone := origin(t)
	commitAt(t, bare, "other", "other.txt")
	finish := half(t, clone)
	c := exec.Command("git", "fetch", "origin", "other")
	c.Dir, c.Env = clone, append(os.Environ(), "LC_ALL=C")
	out, err := c.CombinedOutput()
	finish()
	if err == nil || !strings.Contains(string(out), "bad object worktrees/witness/HEAD") {
		t.Skipf("needs a git that cannot fetch meanwhile: %v: %s", err, out)
	}
	waiting := func() int { // at the gate of the repository, or inside
		shared.mu.Lock()
		defer shared.mu.Unlock()
		if g := shared.gates[filepath.Join(clone, ".git")]; g != nil {
			return g.users
		}
		return 0
	}
	var open atomic.Bool
	begun := make(chan struct{})
	m := manager(t, Options{EnvCommandRunner: func(ctx context.Context, env []string, name string, args ...string) ([]byte, error) {
		if plumbing.Verb(args) == "fetch" && open.Load() {
			t.Error("something is fetched in that moment")
		}
		if plumbing.Verb(args) == "worktree" && indexOf(args, "agent/one") > 0 {
			open.Store(true)
			finish := half(t, clone)
			close(begun)
			for waiting() < 2 { // the fetch of the other comes to the gate, and does not pass
				runtime.Gosched()
			}
			finish()
			open.Store(false)
		}
		return execute(ctx, env, name, args...)
	}})
	var both sync.WaitGroup
	both.Go(func() { // ends with its Provision
		if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "one", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/one", BaseRef: "main"}); err != nil {
			t.Error(err)
		}
	})
	<-begun
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "two", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/two", BaseRef: "other"})
	both.Wait()
	if err != nil || !exists(filepath.Join(path, "other.txt")) {
		t.Errorf("the other: %v", err)
	}
	registryIsEmpty(t)
}
