package worktree

import (
	"os"
	"path/filepath"
	"testing"
)

func TestWorkerIsWhoeverWritesThere(t *testing.T) {
	dir, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(dir, "log")
	worker := func(what string, flag, want int) {
		t.Helper()
		f, err := os.OpenFile(path, flag, 0o600)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		if pid, name := Worker(dir); pid != want || (want != 0) != (name != "") {
			t.Errorf("%s: %d %q, want %d", what, pid, name, want)
		}
		if pid, _ := Worker(dir + "-other"); pid != 0 {
			t.Errorf("%s: in another directory %d works", what, pid)
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		if pid, _ := Worker(dir); pid != 0 {
			t.Errorf("%s: what was removed has %d working there", what, pid)
		}
	}
	worker("a writer", os.O_CREATE|os.O_WRONLY, os.Getpid())
	worker("one that reads and writes", os.O_CREATE|os.O_RDWR, os.Getpid())
	worker("a reader", os.O_CREATE|os.O_RDONLY, 0)
}
