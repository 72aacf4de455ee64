package workspace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/runtime/worktree"
	"rnix/types"
)

// forked makes a workspace from a snapshot of a directory.
func forked(b *bench, dir string) string {
	b.Helper()
	to := filepath.Join(b.dir(), "fork")
	rep, err := b.Checkout(context.Background(), b.id, b.ref(b.take(dir, 1), 1), to)
	if err != nil || len(rep.Kept) > 0 {
		b.Fatalf("Checkout: %+v, %v", rep, err)
	}
	return to
}

func TestForkHasTheFilesOfTheSnapshotAndAnUsefulStatus(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n", "b": "2\n", "in/f": "f\n", "out/f": "f\n"})
	b.user(dir, "sparse-checkout", "set", "in")
	b.write(dir, map[string]string{"a": "changed\n", "new": "n\n"})
	files := tree(t, dir)
	to := forked(b, dir)
	same(t, "the fork", files, tree(t, to))
	status := b.user(to, "status", "--porcelain")
	if status != " M a\n?? new\n" {
		t.Errorf("status is %q", status)
	}
	if head, main := b.user(to, "rev-parse", "HEAD"), b.user(dir, "rev-parse", "HEAD"); head != main {
		t.Errorf("HEAD is %s, not %s", head, main)
	}
	if all, err := b.Workspaces(); err != nil || len(all) != 1 || all[0] != to {
		t.Errorf("workspaces are %q, %v", all, err)
	}
	b.user(to, "checkout", "-q", "-b", "fork")
	if _, err := b.Remove(context.Background(), to); err != nil {
		t.Fatal(err)
	}
	same(t, "the work tree that it was made from", files, tree(t, dir))
	if list := b.user(dir, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 1 {
		t.Errorf("work trees are %s", list)
	}
}

// Git fails where it finds a work tree that another one is just making, so who adds or removes one waits for its turn.
func TestNobodyElseAddsAWorkTreeMeanwhile(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	ref, to := b.ref(b.take(dir, 1), 1), filepath.Join(b.dir(), "fork")
	leave, err := worktree.Enter(t.Context(), filepath.Join(dir, ".git"), true)
	must(t, err)
	ctx, cancel := context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.Checkout(ctx, b.id, ref, to); !strings.Contains(fmt.Sprint(err), "others add or remove work trees there") {
		t.Errorf("a fork meanwhile: %v", err)
	}
	leave()
	to = forked(b, dir)
	leave, err = worktree.Enter(t.Context(), filepath.Join(dir, ".git"), true)
	must(t, err)
	ctx, cancel = context.WithTimeout(t.Context(), 300*time.Millisecond)
	defer cancel()
	if _, err := b.Remove(ctx, to); err == nil {
		t.Error("it was removed meanwhile")
	}
	if _, err := b.desks.dropBranch(ctx, desk{Common: filepath.Join(dir, ".git"), Branch: "main"}); !strings.Contains(fmt.Sprint(err), "others add or remove work trees there") {
		t.Errorf("a branch was looked up meanwhile: %v", err)
	}
	leave()
	_, err = b.Remove(t.Context(), to)
	must(t, err)
}

func TestForkOfARepositoryWithoutCommits(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(nil)
	b.write(dir, map[string]string{"a": "1\n"})
	same(t, "the fork", tree(t, dir), tree(t, forked(b, dir)))
}

func TestForkWithAnEmptySubmoduleCanBeRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	b.user(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.repo(map[string]string{"in": "s"}), "sub")
	b.user(dir, "commit", "-q", "-m", "sub")
	to := forked(b, dir)
	if status := b.user(to, "status", "--porcelain"); status != "" {
		t.Errorf("status is %q", status)
	}
	if _, err := b.Remove(context.Background(), to); err != nil {
		t.Error(err)
	}
}

func TestFileInTheDirectoryOfAnEmptySubmoduleIsKept(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	b.user(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", b.repo(map[string]string{"in": "s"}), "sub")
	b.user(dir, "commit", "-q", "-m", "sub")
	to := forked(b, dir)
	b.write(to, map[string]string{"sub/deep/new": "of an agent\n", "sub/.env": "KEY\n"})
	files := tree(t, to)
	own := &bench{t, b.Keeper, b.home, types.NewUUID()}
	s := own.take(to, 1)
	same(t, "a snapshot", files, tree(t, own.restored(own.ref(s, 1))))
	rep, err := b.Remove(context.Background(), to)
	if err != nil {
		t.Fatal(err)
	}
	same(t, "the rescue", files, tree(t, b.restored(rep.Rescue.Ref)))
	b.user(dir, "-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--init")
	if later := own.take(dir, 2); !strings.Contains(later.Limited, "submodules") {
		t.Errorf("with a repository there: %+v", later)
	}
}

func TestRemoveKeepsEverythingFirst(t *testing.T) {
	t.Parallel()
	both(t, map[string]string{"a": "1\n", "b": "2\n", ".gitignore": "*.env\n"}, func(t *testing.T, b *bench, dir string) {
		to := forked(b, dir)
		isGit := strings.Contains(t.Name(), string(KindGit))
		if isGit {
			b.write(to, map[string]string{"a": "staged only\n"})
			b.user(to, "add", "a")
			b.write(to, map[string]string{"b": "committed, on no branch\n"})
			b.user(to, "commit", "-q", "-m", "unpushed", "b")
		}
		b.write(to, map[string]string{"a": "dirty\n", "deep/new": "untracked\n", "secret.env": "ignored\n"})
		want := tree(t, to)
		head := ""
		if isGit {
			head = strings.TrimSpace(b.user(to, "rev-parse", "HEAD"))
		}
		rep, err := b.Remove(context.Background(), to)
		if err != nil || rep.Rescue == nil || len(rep.Kept) > 0 {
			t.Fatalf("report is %+v, %v", rep, err)
		}
		if _, err := os.Lstat(to); !os.IsNotExist(err) {
			t.Errorf("it is still there: %v", err)
		}
		same(t, "the rescue", want, tree(t, b.restored(rep.Rescue.Ref)))
		if isGit {
			b.user(dir, "gc", "-q", "--prune=now")
			b.user(dir, "--git-dir="+b.git.storeGit(rep.Rescue), "merge-base", "--is-ancestor", head, rep.Rescue.Pin)
			if staged := b.user(dir, "--git-dir="+b.git.storeGit(rep.Rescue), "show", rep.Rescue.Pin+"^2:a"); staged != "staged only\n" {
				t.Errorf("staged was %q", staged)
			}
		}
		if _, err := b.Remove(context.Background(), to); types.CodeOf(err) != types.ErrNotFound {
			t.Errorf("a second time: %v", err)
		}
	})
}

func TestRemoveRefusesWhatItHasNotCovered(t *testing.T) {
	t.Parallel()
	ctx := context.Background()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	if _, err := b.Remove(ctx, dir); types.CodeOf(err) != types.ErrNotFound {
		t.Errorf("the user's own work tree: %v", err)
	}
	refused := func(why, to string) {
		t.Helper()
		_, err := b.Remove(ctx, to)
		if types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), why) {
			t.Errorf("error is %v, not one about %q", err, why)
		}
		if _, err := os.Stat(filepath.Join(to, "a")); err != nil {
			t.Error(err)
		}
	}
	to := forked(b, dir)
	sleeper := exec.Command("sleep", "1000")
	sleeper.Dir = to
	must(t, sleeper.Start())
	refused("works there", to)
	must(t, sleeper.Process.Kill())
	_ = sleeper.Wait() // it was killed
	b.user(dir, "worktree", "lock", "--reason", "mine", to)
	refused("locked", to)
	b.user(dir, "worktree", "unlock", to)
	b.user(to, "init", "-q", "nested")
	refused("nested", to)
	must(t, os.RemoveAll(filepath.Join(to, "nested")))
	b.user(to, "update-ref", "refs/worktree/mine", "HEAD")
	refused("refs/worktree/mine", to)
	b.user(to, "update-ref", "-d", "refs/worktree/mine")
	if _, err := b.Remove(ctx, to); err != nil {
		t.Errorf("then: %v", err)
	}
}
