package gittest

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A copy is what git would have made: its status is clean, it is whole, and the first one does not change with it.
func TestACopyIsWhatGitMakes(t *testing.T) {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("needs git")
	}
	var ran []string
	git := func(dir string) func(args ...string) {
		return func(args ...string) {
			t.Helper()
			c := exec.Command("git", args...)
			c.Dir = dir
			c.Env = append(Quiet(), "PATH="+os.Getenv("PATH"), "HOME=/nowhere", "GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=u", "GIT_AUTHOR_EMAIL=u@x", "GIT_COMMITTER_NAME=u", "GIT_COMMITTER_EMAIL=u@x")
			out, err := c.CombinedOutput()
			if err != nil {
				t.Fatalf("git %q: %v: %s", args, err, out)
			}
			ran = append(ran, args[0]+" "+strings.TrimSpace(string(out)))
		}
	}
	unlike := t.TempDir() // what an earlier run of this test has made
	repo := func(text, config string) string {
		ran = nil
		dir := t.TempDir()
		if err := os.Mkdir(filepath.Join(dir, "sub"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, "sub", "a.txt"), []byte(text+unlike), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink("sub", filepath.Join(dir, "link")); err != nil {
			t.Fatal(err)
		}
		Commit(t, dir, config, git(dir))
		return dir
	}
	first := repo("a\n", "")
	if want := []string{"init ", "add ", "commit "}; !slices.Equal(ran, want) {
		t.Fatalf("the first: %q", ran)
	}
	second := repo("a\n", "")
	if want := []string{"add "}; !slices.Equal(ran, want) {
		t.Fatalf("the second: %q", ran)
	}
	for _, other := range []string{repo("b\n", ""), repo("a\n", "[core]")} {
		if len(ran) != 3 {
			t.Errorf("%s is no copy, but git has not made it: %q", other, ran)
		}
	}
	if err := os.WriteFile(filepath.Join(first, "new.txt"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	git(first)("add", "-A")
	git(first)("commit", "-q", "-m", "second")
	ran = nil
	git(second)("status", "--porcelain", "--branch")
	git(second)("fsck", "--strict", "--no-progress")
	git(second)("log", "--format=%s %T", "HEAD")
	git(first)("log", "--format=%s %T", "HEAD^")
	git(second)("reflog", "--format=%gs")
	if ran[0] != "status ## main" || ran[1] != "fsck " || ran[2] != ran[3] || ran[4] != "reflog commit (initial): first" {
		t.Errorf("%q", ran)
	}
}
