package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// An agent can write the index of its work tree, and the locks of the repository that it works in. What it puts there neither holds the daemon up nor fills its memory.
func TestWhatAnAgentPutsInThePlaceOfAnIndexIsNotRead(t *testing.T) {
	t.Parallel()
	put := map[string]func(path string) error{
		"a pipe":   func(path string) error { return unix.Mkfifo(path, 0o600) },
		"no end":   func(path string) error { return os.Symlink("/dev/zero", path) },
		"too long": func(path string) error { return os.WriteFile(path, nil, 0o600) },
	}
	for name, put := range put {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBench(t)
			tree := b.plant(b.repo(map[string]string{"a": "a\n"}))
			b.write(tree.Dir, map[string]string{"b": "b\n"})
			g := b.grove()
			s, err := g.canopy.stand(t.Context(), b.id, tree)
			must(t, err)
			replace := func(path string) {
				must(t, os.RemoveAll(path))
				must(t, put(path))
				if name == "too long" {
					must(t, os.Truncate(path, 1<<40))
				}
			}
			lock := filepath.Join(s.Common, "refs", "heads", s.branch+".lock")
			replace(lock)
			_, err = g.landings.advancing(s, strings.Repeat("0", 40))
			must(t, err)
			if said := b.grove().SettleMerges(t.Context()); len(said) > 0 {
				t.Errorf("%q", said)
			}
			if _, err := os.Lstat(lock); err != nil {
				t.Errorf("a lock that is none of ours was removed: %v", err)
			}
			must(t, os.Remove(lock))
			index := filepath.Join(s.gitDir, "index")
			replace(index)
			if _, _, err := g.CommitWork(t.Context(), b.id, tree, "work\n"); err == nil || !strings.Contains(err.Error(), index) {
				t.Errorf("%v", err)
			}
		})
	}
}

// While no file can be opened it is not known whose a lock is.
func TestTheLockOfAnotherGitStaysWhenNoFileCanBeOpened(t *testing.T) { // alone: the limit is that of the test program
	path := filepath.Join(t.TempDir(), "index")
	must(t, os.WriteFile(path+".lock", []byte("of another"), 0o600))
	var was unix.Rlimit
	must(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, nil, &was))
	must(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &unix.Rlimit{Max: was.Max}, nil))
	err := writeLocked(path, []byte("ours"))
	must(t, unix.Prlimit(0, unix.RLIMIT_NOFILE, &was, nil))
	if err == nil {
		t.Error("it was written")
	}
	if b, err := os.ReadFile(path + ".lock"); string(b) != "of another" {
		t.Errorf("the lock of another git is gone: %v", err)
	}
}
