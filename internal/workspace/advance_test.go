package workspace

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"rnix/types"
)

// A daemon that is killed while it commits the work of an agent leaves no lock behind that stops the gits of the next.
func TestACommitThatWasCutOffLeavesNoLock(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	tree := b.plant(b.repo(map[string]string{"a": "a\n"}))
	b.write(tree.Dir, map[string]string{"b": "b\n"})
	g := b.grove()
	s, err := g.canopy.stand(t.Context(), b.id, tree)
	must(t, err)
	const commit = "0123456789012345678901234567890123456789"
	locks := map[string]string{filepath.Join(s.gitDir, "HEAD.lock"): "", filepath.Join(s.gitDir, "index.lock"): "half an index", filepath.Join(s.Common, "refs/heads", s.branch+".lock"): commit + "\n"}
	left := func() (names []string) {
		for path := range locks {
			if _, err := os.Lstat(path); err == nil {
				names = append(names, filepath.Base(path))
			}
		}
		return names
	}
	lock := func(at time.Time) {
		for path, text := range locks {
			must(t, os.WriteFile(path, []byte(text), 0o600))
			if !at.IsZero() {
				must(t, os.Chtimes(path, at, at))
			}
		}
	}
	notes := func() int {
		all, err := os.ReadDir(g.landings.advances())
		must(t, err)
		return len(all)
	}
	settle := func() {
		if said := b.grove().SettleMerges(t.Context()); len(said) > 0 {
			t.Errorf("%q", said)
		}
		if n := notes(); n > 0 {
			t.Errorf("%d notes are left", n)
		}
	}

	_, err = g.landings.advancing(s, commit)
	must(t, err)
	lock(time.Time{})
	if _, _, err := g.CommitWork(t.Context(), b.id, tree, "work\n"); types.CodeOf(err) != types.ErrConflict || !strings.Contains(err.Error(), ".lock") {
		t.Errorf("with the locks of another: %v", err)
	}
	_, err = g.landings.advancing(s, commit) // the one before is over
	must(t, err)
	lock(time.Time{})
	settle()
	if names := left(); len(names) > 0 {
		t.Fatalf("left: %q", names)
	}
	done, made, err := g.CommitWork(t.Context(), b.id, tree, "work\n")
	if err != nil || !made || strings.TrimSpace(b.user(tree.Dir, "rev-parse", "HEAD")) != done {
		t.Fatalf("%s %v %v", done, made, err)
	}
	if n := notes(); n > 0 {
		t.Errorf("%d notes are left of what is over", n)
	}

	// What another git has made before or since stays, but a lock of the branch that names our commit.
	for _, at := range []time.Time{time.Now().Add(-time.Hour), time.Now().Add(time.Hour)} {
		_, err = g.landings.advancing(s, commit)
		must(t, err)
		lock(at)
		settle()
		if names := left(); len(names) != 2 {
			t.Errorf("left of what others have made: %q", names)
		}
	}
	lock(time.Time{}) // nothing is noted
	settle()
	if names := left(); len(names) != 3 {
		t.Errorf("left without a note: %q", names)
	}
	must(t, os.WriteFile(filepath.Join(g.landings.advances(), "x.json"), []byte("{"), 0o600))
	if said := b.grove().SettleMerges(t.Context()); len(said) != 1 || !strings.Contains(said[0], "x.json") {
		t.Errorf("%q", said)
	}
}
