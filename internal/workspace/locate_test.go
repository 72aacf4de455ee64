package workspace

import (
	"os"
	"path/filepath"
	"testing"
)

// What git does not take for a repository is none: an empty .git is what the sandbox of an agent's command line may leave behind, above the
// directories of everybody else.
func TestDirectoryWithoutAHeadIsNoRepository(t *testing.T) {
	for name, c := range map[string]struct {
		make func(dir string) error
		want bool
	}{
		"an empty directory": {func(dir string) error { return os.Mkdir(filepath.Join(dir, ".git"), 0o700) }, false},
		"one with a HEAD": {func(dir string) error {
			return os.MkdirAll(filepath.Join(dir, ".git", "HEAD"), 0o700)
		}, true},
		"a pointer": {func(dir string) error {
			return os.WriteFile(filepath.Join(dir, ".git"), []byte("gitdir: /nowhere\n"), 0o600)
		}, true},
	} {
		top := t.TempDir()
		below := filepath.Join(top, "a", "b")
		if err := os.MkdirAll(below, 0o700); err != nil {
			t.Fatal(err)
		}
		if err := c.make(top); err != nil {
			t.Fatal(err)
		}
		_, above := stampOf(filepath.Dir(top)) // where the tests lie may be within a repository
		if _, seems := stampOf(below); seems != (c.want || above) {
			t.Errorf("%s: a repository: %t", name, seems)
		}
	}
}
