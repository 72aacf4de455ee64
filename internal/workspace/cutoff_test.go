package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/internal/plumbing"
)

// A daemon that is killed while a workspace is made, or removed, leaves one of these: the next try to remove it comes to its end.
func TestAWorkspaceThatWasCutOffIsRemoved(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		cut  func(b *bench, dir, to string)
		kept string // what the rescue holds
	}{
		"before git was asked": {cut: func(b *bench, dir, to string) {
			b.user(dir, "worktree", "remove", "--force", to)
			must(b, os.MkdirAll(filepath.Join(to, "d", "e"), 0o755))
		}},
		"while git added it": {cut: func(b *bench, dir, to string) {
			known := plumbing.Registration(filepath.Join(dir, ".git"), to)
			must(b, os.RemoveAll(to))
			b.write(to, map[string]string{".git": "gitdir: " + known + "\n"})
			must(b, os.Remove(filepath.Join(known, "HEAD")))
			must(b, os.WriteFile(filepath.Join(known, "locked"), []byte("initializing"), 0o644))
		}},
		"before git had written its .git": {cut: func(b *bench, dir, to string) {
			known := plumbing.Registration(filepath.Join(dir, ".git"), to)
			must(b, os.RemoveAll(to))
			must(b, os.Mkdir(to, 0o755))
			must(b, os.WriteFile(filepath.Join(known, "locked"), []byte("initializing"), 0o644))
			must(b, os.Remove(filepath.Join(known, "HEAD")))
		}},
		"when git had made nothing else": {cut: func(b *bench, dir, to string) {
			known := plumbing.Registration(filepath.Join(dir, ".git"), to)
			must(b, os.RemoveAll(to))
			must(b, os.WriteFile(filepath.Join(known, "locked"), []byte("initializing"), 0o644))
		}},
		"while git removed it": {kept: "new", cut: func(b *bench, _, to string) {
			must(b, os.Remove(filepath.Join(to, ".git")))
			must(b, os.Remove(filepath.Join(to, "a")))
		}},
		"when its files were gone": {cut: func(b *bench, _, to string) {
			must(b, os.RemoveAll(to))
			must(b, os.MkdirAll(filepath.Join(to, "d"), 0o755))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			dir := b.repo(map[string]string{"a": "1\n", "d/b": "2\n"})
			b.write(dir, map[string]string{"new": "n\n"})
			to := forked(b, dir)
			c.cut(b, dir, to)
			rep, err := b.Remove(t.Context(), to)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := os.Lstat(to); !os.IsNotExist(err) {
				t.Errorf("it is there still: %v", err)
			}
			if list := b.user(dir, "worktree", "list", "--porcelain"); strings.Count(list, "worktree ") != 1 {
				t.Errorf("work trees are %s", list)
			}
			if all, err := b.Workspaces(); err != nil || len(all) != 0 {
				t.Errorf("workspaces are %q, %v", all, err)
			}
			if c.kept != "" && (rep.Rescue == nil || !strings.Contains(b.user(dir, "--git-dir="+b.git.storeGit(rep.Rescue), "ls-tree", "--name-only", rep.Rescue.ID), c.kept)) {
				t.Errorf("the rescue is %+v", rep.Rescue)
			}
		})
	}
}

// What a person has put where a workspace was cut off stays.
func TestFilesInAWorkspaceThatWasCutOffStay(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	to := forked(b, dir)
	b.user(dir, "worktree", "remove", "--force", to)
	b.write(to, map[string]string{"theirs": "n\n"})
	if _, err := b.Remove(t.Context(), to); err == nil {
		t.Error("it was removed")
	}
	if _, err := os.Lstat(filepath.Join(to, "theirs")); err != nil {
		t.Error(err)
	}
}

// Go's module cache has such directories. Git would remove the half of them, forget the work tree, and never find it again.
func TestAWorkspaceWithDirectoriesThatNobodyMayWriteIsRemoved(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n", ".gitignore": "mod/\n"})
	to := forked(b, dir)
	b.write(to, map[string]string{"mod/x/m": "m\n", "pkg/p": "p\n"})
	for _, d := range []string{"mod/x", "mod", "pkg"} {
		must(t, os.Chmod(filepath.Join(to, d), 0o555))
	}
	aside := filepath.Join(b.dir(), "aside")
	must(t, os.MkdirAll(filepath.Join(aside, "d"), 0o755))
	must(t, os.Chmod(aside, 0o500))
	openDirs(aside)
	if info, err := os.Stat(aside); err != nil || info.Mode().Perm() != 0o700 { // as root the rest of this test would pass all the same
		t.Errorf("%v, %v", info.Mode(), err)
	}
	if _, err := b.Remove(t.Context(), to); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Lstat(to); !os.IsNotExist(err) {
		t.Errorf("it is there still: %v", err)
	}
}

// A repository that was renamed, or forgot the work tree: what helps is said, and nothing is removed.
func TestAWorkTreeOfWhichNoRepositoryKnowsStays(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	dir := b.repo(map[string]string{"a": "1\n"})
	to := forked(b, dir)
	must(t, os.Rename(dir, dir+".moved"))
	if _, err := b.Remove(t.Context(), to); err == nil || !strings.Contains(err.Error(), "its repository is not at "+dir+"/.git any more: move that back") {
		t.Errorf("renamed: %v", err)
	}
	must(t, os.Rename(dir+".moved", dir))
	must(t, os.RemoveAll(filepath.Join(dir, ".git", "worktrees")))
	if _, err := b.Remove(t.Context(), to); err == nil || !strings.Contains(err.Error(), "move its files away and try again") {
		t.Errorf("forgotten: %v", err)
	}
	must(t, os.Rename(to, to+".away"))
	if _, err := b.Remove(t.Context(), to); err != nil {
		t.Error(err)
	}
}
