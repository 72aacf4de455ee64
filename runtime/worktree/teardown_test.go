package worktree

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pushed commits a file in a checkout and pushes its branch.
func pushed(t *testing.T, path string) {
	t.Helper()
	write(t, filepath.Join(path, "done.txt"), "done")
	git(t, path, "add", ".")
	git(t, path, "commit", "-qm", "done")
	git(t, path, "push", "-q", "origin", "HEAD")
}

func TestWorkThatIsNowhereElseKeepsItsCheckout(t *testing.T) {
	for name, tt := range map[string]struct {
		plant func(t *testing.T, path, clone string)
		tree  string // why a work tree is parked
		whole string // why a clone is; "" = not asked
	}{
		"changed":   {func(t *testing.T, p, _ string) { write(t, filepath.Join(p, "README.md"), "new\n") }, "not committed", "not committed"},
		"deleted":   {func(t *testing.T, p, _ string) { os.Remove(filepath.Join(p, "README.md")) }, "not committed", "not committed"},
		"staged":    {func(t *testing.T, p, _ string) { write(t, filepath.Join(p, "README.md"), "n\n"); git(t, p, "add", ".") }, "not committed", "not committed"},
		"untracked": {func(t *testing.T, p, _ string) { write(t, filepath.Join(p, "new.txt"), "new") }, "not under version control", "not under version control"},
		"ignored":   {func(t *testing.T, p, _ string) { write(t, filepath.Join(p, "a.log"), "log") }, "ignores", "ignores"},
		"unpushed": {func(t *testing.T, p, _ string) {
			write(t, filepath.Join(p, "x"), "x")
			git(t, p, "add", ".")
			git(t, p, "commit", "-qm", "x")
		}, "on its branch only", "remote does not have"},
		"detached": {func(t *testing.T, p, _ string) {
			git(t, p, "checkout", "-q", "--detach")
			git(t, p, "commit", "-q", "--allow-empty", "-m", "x")
		}, "on no remote", "remote does not have"},
		"left behind": {func(t *testing.T, p, _ string) {
			b := git(t, p, "symbolic-ref", "--short", "HEAD")
			git(t, p, "checkout", "-q", "--detach")
			git(t, p, "commit", "-q", "--allow-empty", "-m", "x")
			git(t, p, "checkout", "-q", b)
		}, "no branch holds", "remote does not have"},
		"stashed": {func(t *testing.T, p, _ string) {
			write(t, filepath.Join(p, "README.md"), "n")
			git(t, p, "stash", "-q")
		}, "stashed", "stashed"},
		"hidden":    {func(t *testing.T, p, _ string) { git(t, p, "update-index", "--assume-unchanged", "README.md") }, "not to look", "not to look"},
		"skipped":   {func(t *testing.T, p, _ string) { git(t, p, "update-index", "--skip-worktree", "README.md") }, "not to look", "not to look"},
		"half-way":  {func(t *testing.T, p, _ string) { git(t, p, "bisect", "start") }, "half-way", "half-way"},
		"own ref":   {func(t *testing.T, p, _ string) { git(t, p, "update-ref", "refs/worktree/mine", "HEAD") }, "its own references", ""},
		"locked":    {func(t *testing.T, p, _ string) { git(t, p, "worktree", "lock", "--reason", "mine", p) }, "locked", ""},
		"nested":    {func(t *testing.T, p, _ string) { git(t, p, "init", "-q", ".agent/inner") }, "other repositories", "other repositories"},
		"submodule": {func(t *testing.T, p, clone string) { git(t, p, "submodule", "add", "-q", clone, "sub"); pushed(t, p) }, "repositor", "repositor"},
		"redirected": {func(t *testing.T, p, clone string) {
			os.RemoveAll(filepath.Join(p, ".git"))
			write(t, filepath.Join(p, ".git"), "gitdir: "+filepath.Join(clone, ".git")+"\n")
		}, "does not lead", "not the repository"},
		"elsewhere": {func(t *testing.T, p, clone string) {
			write(t, filepath.Join(p, "new.txt"), "new")
			git(t, p, "config", "core.worktree", clone)
			git(t, p, "config", "status.showUntrackedFiles", "no")
		}, "not under version control", "not under version control"},
		"local tag": {func(t *testing.T, p, _ string) {
			git(t, p, "checkout", "-q", "--detach")
			git(t, p, "commit", "-q", "--allow-empty", "-m", "x")
			git(t, p, "tag", "mine")
			git(t, p, "checkout", "-q", "-")
		}, "", "tags are in it"},
	} {
		for _, strategy := range []CloneStrategy{StrategyWorktreeAdd, StrategyClone} {
			want := tt.tree
			if strategy == StrategyClone {
				want = tt.whole
			}
			if want == "" {
				continue
			}
			t.Run(name+"/"+strategy.String(), func(t *testing.T) {
				t.Parallel()
				bare, clone := origin(t)
				m := manager(t, Options{})
				var path string
				if strategy == StrategyClone {
					var err error
					if path, err = m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: bare, Branch: "agent/s", BaseRef: "main"}); err != nil {
						t.Fatal(err)
					}
				} else {
					path = added(t, m, clone, "s")
				}
				tt.plant(t, path, clone)
				before := contents(t, path)
				mustPark(t, m.Teardown(t.Context(), "s"), want)
				if after := contents(t, path); after != before {
					t.Errorf("it was changed:\n%s\n%s", before, after)
				}
				if p, err := m.Path("s"); p != path || err != nil {
					t.Errorf("Path = %s, %v", p, err)
				}
			})
		}
	}
}

// contents describes all files of a checkout.
func contents(t *testing.T, dir string) string {
	t.Helper()
	var b strings.Builder
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		data, _ := os.ReadFile(p)
		b.WriteString(p + ": " + string(data) + "\n")
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestACheckoutWhoseWorkIsElsewhereGoes(t *testing.T) {
	bare, clone := origin(t)
	m := manager(t, Options{})
	tree := added(t, m, clone, "pushed")
	pushed(t, tree)
	merged := added(t, m, clone, "merged")
	write(t, filepath.Join(merged, "m.txt"), "m")
	git(t, merged, "add", ".")
	git(t, merged, "commit", "-qm", "m")
	git(t, clone, "merge", "-q", "agent/merged")
	whole, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "whole", RepoURL: bare, Branch: "agent/whole", BaseRef: "main"})
	if err != nil {
		t.Fatal(err)
	}
	pushed(t, whole)
	for id, path := range map[string]string{"pushed": tree, "merged": merged, "whole": whole} {
		if err := m.Teardown(t.Context(), id); err != nil || exists(path) {
			t.Errorf("%s: %v", id, err)
		}
	}
	if b := git(t, clone, "branch", "--list", "agent/*"); !strings.Contains(b, "agent/pushed") || !strings.Contains(b, "agent/merged") {
		t.Errorf("branches are gone: %s", b)
	}
}

func TestACheckoutInWhichSomebodyWorksStays(t *testing.T) {
	bare, _ := origin(t)
	m := manager(t, Options{})
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: bare})
	if err != nil {
		t.Fatal(err)
	}
	c := exec.Command("cat")
	c.Dir = path
	in, err := c.StdinPipe()
	if err == nil {
		err = c.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	mustPark(t, m.Teardown(t.Context(), "s"), "works there")
	if err := errors.Join(in.Close(), c.Wait(), m.Teardown(t.Context(), "s")); err != nil || exists(path) {
		t.Errorf("%v", err)
	}
}

func TestACheckoutThatWasRemovedByHand(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	for name, plant := range map[string]func(path string){
		"": func(string) {},
		"no branch holds": func(p string) {
			git(t, p, "checkout", "-q", "--detach")
			git(t, p, "commit", "-q", "--allow-empty", "-m", "x")
		},
		"staged":              func(p string) { write(t, filepath.Join(p, "README.md"), "n"); git(t, p, "add", ".") },
		"work tree is locked": func(p string) { git(t, p, "worktree", "lock", p) },
	} {
		path := added(t, m, clone, "s")
		plant(path)
		if err := os.RemoveAll(path); err != nil {
			t.Fatal(err)
		}
		err := m.Teardown(t.Context(), "s")
		if name == "" {
			if list := git(t, clone, "worktree", "list"); err != nil || strings.Contains(list, path) {
				t.Errorf("%v: %s", err, list)
			}
			continue
		}
		mustPark(t, err, name)
		if !strings.Contains(git(t, clone, "worktree", "list"), path) {
			t.Errorf("%s: git does not know it any more", name)
		}
		if _, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, Branch: "agent/s", BaseRef: "main"}); !errors.Is(err, ErrParked) {
			t.Errorf("%s: made over it: %v", name, err)
		}
		if name == "work tree is locked" {
			git(t, clone, "worktree", "unlock", path)
		}
		git(t, clone, "worktree", "prune", "--expire=now")
		if err := m.Teardown(t.Context(), "s"); err != nil {
			t.Errorf("%s: after git has forgotten it: %v", name, err)
		}
	}
}

func TestAStaleRegistrationIsNotInTheWay(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	at := filepath.Join(m.ParentDir(), "s")
	git(t, clone, "worktree", "add", "-q", "-b", "agent/s", at)
	if err := os.RemoveAll(at); err != nil {
		t.Fatal(err)
	}
	if path := added(t, m, clone, "s"); !exists(filepath.Join(path, "README.md")) {
		t.Error("nothing is there")
	}
}

func TestAMovedCheckoutStays(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	path := added(t, m, clone, "s")
	write(t, filepath.Join(path, "new.txt"), "new")
	git(t, clone, "worktree", "move", path, path+"-moved")
	if err := m.Teardown(t.Context(), "s"); err != nil || !exists(filepath.Join(path+"-moved", "new.txt")) {
		t.Errorf("%v", err)
	}
	path = added(t, m, clone, "u")
	if err := os.Rename(path, path+"-away"); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(path, "other.txt"), "other")
	mustPark(t, m.Teardown(t.Context(), "u"), "another directory")
}

func TestWhatASubmoduleNamesIsNotRun(t *testing.T) {
	_, clone := origin(t)
	m := manager(t, Options{})
	path := added(t, m, clone, "s")
	git(t, path, "submodule", "add", "-q", clone, "sub")
	pushed(t, path)
	mark, evil, sub := filepath.Join(t.TempDir(), "ran"), filepath.Join(t.TempDir(), "evil"), filepath.Join(path, "sub")
	write(t, evil, "#!/bin/sh\necho \"$0 $*\" >>"+mark+"\ncat\n")
	if err := os.Chmod(evil, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(sub, ".gitattributes"), "* filter=evil\n")
	git(t, sub, "config", "filter.evil.clean", evil)
	git(t, sub, "config", "core.fsmonitor", evil)
	write(t, filepath.Join(sub, "README.md"), "m\n")
	mustPark(t, m.Teardown(t.Context(), "s"), "other repositories")
	if b, err := os.ReadFile(mark); err == nil {
		t.Errorf("these were run:\n%s", b)
	}
}
