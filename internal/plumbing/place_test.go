package plumbing

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

func TestFilesSayWhetherThereMayBeReferences(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		may  bool
	}{
		"nothing": {func(string) error { return nil }, false},
		"others are packed": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "packed-refs"), []byte("# pack-refs with: peeled\naa refs/heads/refs/ours/x\nbb refs/oursx\n"), 0o600)
		}, false},
		"packed": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, "packed-refs"), []byte("aa refs/heads/x\nbb refs/ours/x\n"), 0o600)
		}, true},
		"a file of its own":   {func(dir string) error { return os.MkdirAll(filepath.Join(dir, "refs", "ours"), 0o700) }, true},
		"a reftable":          {func(dir string) error { return os.Mkdir(filepath.Join(dir, "reftable"), 0o700) }, true},
		"a directory there":   {func(dir string) error { return os.Mkdir(filepath.Join(dir, "packed-refs"), 0o700) }, true},
		"a pipe in its place": {func(dir string) error { return syscall.Mkfifo(filepath.Join(dir, "packed-refs"), 0o600) }, false},
	} {
		dir := t.TempDir()
		if err := c.make(dir); err != nil {
			t.Fatal(err)
		}
		if got := MayHaveRefs(dir, "refs/ours/"); got != c.may {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestTheCommitOfAHeadIsReadOfFilesOnlyAsGitWritesThem(t *testing.T) {
	id, other := strings.Repeat("a1", 20), strings.Repeat("b2", 20)
	write := func(path, text string) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
	}
	for name, c := range map[string]struct{ head, ref, branch, want string }{
		"a branch":                {"ref: refs/heads/a/b\n", id + "\n", "a/b", id},
		"a commit":                {other + "\n", "", "", other},
		"a branch without one":    {"ref: refs/heads/a/b\n", "", "a/b", ""},
		"the name of another":     {"ref: refs/heads/a/b\n", "ref: refs/heads/main\n", "a/b", ""},
		"no object":               {"ref: refs/heads/a/b\n", strings.Repeat("0", 40) + "\n", "a/b", ""},
		"half an object":          {"ref: refs/heads/a/b\n", id[:20] + "\n", "a/b", ""},
		"no branch":               {"ref: refs/tags/a/b\n", id + "\n", "", ""},
		"a branch in a reftable":  {"ref: refs/heads/.invalid\n", "", ".invalid", ""},
		"a way out of the branch": {"ref: refs/heads/../heads/../../refs/heads/a/b\n", id + "\n", "../heads/../../refs/heads/a/b", ""},
	} {
		dir, common := t.TempDir(), t.TempDir()
		write(filepath.Join(dir, "HEAD"), c.head)
		if c.ref != "" {
			write(filepath.Join(common, "refs", "heads", "a", "b"), c.ref)
		}
		if got := Head(dir, common); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
		if got := Branch(dir); got != c.branch {
			t.Errorf("%s: branch %q", name, got)
		}
	}
}

func TestALogIsWholeOnlyIfEachLineIsAMove(t *testing.T) {
	dir, a, b := t.TempDir(), strings.Repeat("a", 40), strings.Repeat("b", 40)
	if _, whole, err := ReadLog(dir, "HEAD"); !os.IsNotExist(err) || whole {
		t.Errorf("no log: %v, %v", whole, err)
	}
	path := filepath.Join(dir, "logs", "HEAD")
	line := a + " " + b + " u <u@x> 1 +0000\tcommit: x\n"
	for text, want := range map[string]bool{line: true, "": true, line + "what\n": false, line + a[:7] + " " + b + " u\n": false} {
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o700), os.WriteFile(path, []byte(text), 0o600)); err != nil {
			t.Fatal(err)
		}
		moves, whole, err := ReadLog(dir, "HEAD")
		if err != nil || whole != want || text != "" && !slices.Equal(moves, []Move{{a, b}}) {
			t.Errorf("%q: %v, %v, %v", text, moves, whole, err)
		}
	}
}

func TestAPathOfWhichTheEndIsNotThereIsResolved(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "real", "in"), 0o700); err != nil {
		t.Fatal(err)
	}
	for name, to := range map[string]string{"link": "real", "gone": "nowhere", "self": "self"} {
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	for path, want := range map[string]string{"link/in": "real/in", "link/in/x/y": "real/in/x/y", "link": "real", "gone/x": "gone/x", "self/x": "self/x", "a/b": "a/b", "link/../a": "a"} {
		if got := Resolved(dir + "/" + path); got != filepath.Join(dir, want) {
			t.Errorf("%s is %s", path, got)
		}
	}
	if got := Resolved("/"); got != "/" {
		t.Error(got)
	}
	if got := Resolved("/nowhere/at/all"); got != "/nowhere/at/all" {
		t.Error(got)
	}
}
