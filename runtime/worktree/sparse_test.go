package worktree

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"rnix/types"
)

// wide gives a repository files in several directories.
func wide(t *testing.T, bare string) {
	t.Helper()
	git(t, bare, "config", "uploadpack.allowFilter", "true")
	tmp := filepath.Join(t.TempDir(), "w")
	git(t, "/", "clone", "-q", bare, tmp)
	for _, f := range []string{"api/a.go", "api/v1/b.go", "web/c.js", "docs/d.md", "tools/sub/e.sh", "tools/f.sh"} {
		write(t, filepath.Join(tmp, f), f+"\n")
	}
	git(t, tmp, "add", ".")
	git(t, tmp, "commit", "-qm", "wide")
	git(t, tmp, "push", "-q", "origin", "main")
}

// files lists what is checked out, without git's own.
func files(t *testing.T, dir string) (out []string) {
	t.Helper()
	err := filepath.WalkDir(dir, func(p string, e os.DirEntry, err error) error {
		if err == nil && e.Name() == ".git" {
			if e.IsDir() {
				return filepath.SkipDir
			}
			return nil
		}
		if err == nil && !e.IsDir() {
			rel, _ := filepath.Rel(dir, p)
			out = append(out, rel)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(out)
	return out
}

func TestASparseCheckoutHasWhatWasAskedForOnly(t *testing.T) {
	bare, clone := origin(t)
	wide(t, bare)
	m := manager(t, Options{})
	want := []string{".gitignore", "README.md", "api/a.go", "api/v1/b.go", "tools/f.sh", "tools/sub/e.sh"}
	for id, s := range map[string]ProvisionSpec{
		"clone":  {RepoURL: "file://" + bare, BaseRef: "main", Branch: "agent/clone"},
		"local":  {RepoURL: bare, Branch: "main"},
		"tree":   {Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, BaseRef: "main", Branch: "agent/tree"},
		"nobody": {Strategy: StrategyWorktreeAdd, ParentRepoPath: clone, BaseRef: "main"},
	} {
		s.SessionID, s.Sparse = id, []string{"api", "tools/sub"}
		path, err := m.Provision(t.Context(), s)
		if err != nil {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if got := files(t, path); !slices.Equal(got, want) {
			t.Errorf("%s: %q", id, got)
		}
		if s := git(t, path, "status", "--porcelain"); s != "" {
			t.Errorf("%s: status %q", id, s)
		}
		if id == "clone" && git(t, path, "config", "remote.origin.partialclonefilter") != "blob:none" {
			t.Error("all was fetched")
		}
	}
	if got := files(t, clone); !slices.Equal(got, []string{".gitignore", "README.md"}) || git(t, clone, "status", "--porcelain") != "" {
		t.Errorf("the parent has %q", got)
	}
	whole := added(t, m, clone, "whole") // its neighbours leave nothing out of it
	if !exists(filepath.Join(whole, "web/c.js")) {
		t.Errorf("a work tree beside it has %q", files(t, whole))
	}
	work, err := m.Path("tree")
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(work, "web/c.js"), "where nothing is checked out\n")
	if mustPark(t, m.Teardown(t.Context(), "tree"), "web/c.js"); !exists(filepath.Join(work, "web/c.js")) {
		t.Error("work is lost")
	}
	os.RemoveAll(filepath.Join(work, "web"))
	write(t, filepath.Join(work, "api/a.go"), "changed\n")
	mustPark(t, m.Teardown(t.Context(), "tree"), "api/a.go")
	git(t, work, "checkout", "--", "api/a.go")
	for _, id := range []string{"clone", "local", "tree", "nobody", "whole"} {
		if err := m.Teardown(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
	if list := git(t, clone, "worktree", "list"); strings.Contains(list, "\n") {
		t.Errorf("git knows %s", list)
	}
}

func TestDirectoriesOfASparseCheckoutAreNamesAndNothingElse(t *testing.T) {
	for _, d := range []string{"", ".", "..", "../x", "/etc", "a/../b", "a//b", "a/", "--stdin", "-x", "a*", "a?", "[a]", "!a", "#a", `a\b`, "a\nb", `a"b`, ".git", ".git/hooks"} {
		f := &fake{}
		m := manager(t, Options{CommandRunner: f.plain})
		_, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://h/r", Sparse: []string{"ok", d}})
		if types.CodeOf(err) != types.ErrInvalid || len(f.calls) > 0 {
			t.Errorf("%q: %v, calls %q", d, err, f.calls)
		}
	}
	if why := badSparse(make([]string, maxSparse+1)); why == "" {
		t.Error("any number is taken")
	}
	if why := badSparse([]string{strings.Repeat("a/", maxSparseBytes) + "a"}); why == "" {
		t.Error("any length is taken")
	}
	if why := badSparse([]string{"a", "a/b", "with space", ".github", "ü/x"}); why != "" {
		t.Error(why)
	}
}

func TestASeedIsTakenFromAndNotNeeded(t *testing.T) {
	bare, seed := origin(t)
	tip := commitAt(t, bare, "main", "new.txt") // what the seed has not
	broken := filepath.Join(t.TempDir(), "broken")
	write(t, filepath.Join(broken, "HEAD"), "ref: refs/heads/main\n")
	write(t, filepath.Join(broken, "objects", "info", "alternates"), "/nowhere\n")
	m := manager(t, Options{})
	for id, from := range map[string]string{"seeded": seed, "bare": bare, "none": filepath.Join(t.TempDir(), "none"), "broken": broken} {
		path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: id, RepoURL: "file://" + bare, Branch: "main", Seed: from})
		if err != nil || git(t, path, "rev-parse", "HEAD") != tip {
			t.Errorf("%s: %v", id, err)
			continue
		}
		if exists(filepath.Join(path, ".git", "objects", "info", "alternates")) {
			t.Errorf("%s: it lives on its seed", id)
		}
	}
	if err := os.RemoveAll(seed); err != nil {
		t.Fatal(err)
	}
	for _, id := range []string{"seeded", "none"} {
		path, err := m.Path(id)
		if err != nil {
			t.Fatal(err)
		}
		git(t, path, "fsck", "--full")
		if err := m.Teardown(t.Context(), id); err != nil {
			t.Errorf("%s: %v", id, err)
		}
	}
}

func TestASeedAndDirectoriesReachGitAsOptions(t *testing.T) {
	f, seed := &fake{}, t.TempDir()
	write(t, filepath.Join(seed, "HEAD"), "")
	write(t, filepath.Join(seed, "objects", "x"), "")
	m := manager(t, Options{CommandRunner: f.plain})
	path, err := m.Provision(t.Context(), ProvisionSpec{SessionID: "s", RepoURL: "https://h/r", Branch: "main", Seed: seed, Sparse: []string{"api"}})
	if err != nil {
		t.Fatal(err)
	}
	want := [][]string{{"git", "clone", "--quiet", "--reference-if-able=" + seed, "--dissociate", "--filter=blob:none", "--sparse", "--branch", "main", "--", "https://h/r", path},
		{"git", "-C", path, "sparse-checkout", "set", "--cone", "--", "api"}}
	if len(f.calls) != 2 || !slices.Equal(f.calls[0], want[0]) || !slices.Equal(f.calls[1], want[1]) {
		t.Errorf("git was asked %q", f.calls)
	}
}
