package workspace

import (
	"maps"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Only a file behind a filter, of which size and times leave no doubt, is taken for what git has.
func TestAFileBehindAFilterIsUntouchedByItsTimes(t *testing.T) {
	t.Parallel()
	b := newBench(t)
	repo := b.repo(map[string]string{".gitattributes": "*.up filter=up\n*.off -filter\n", "a.up": "a\n", "b\n\t.up": "b\n", "c.txt": "c\n", "d.off": "d\n"})
	index := filepath.Join(repo, ".git", "index")
	s := standing{Tree: Tree{Dir: repo, Common: filepath.Join(repo, ".git")}, gitDir: filepath.Join(repo, ".git")}
	all := []string{"a.up", "b\n\t.up", "c.txt", "d.off", "not there"}
	look := func(when string, later time.Duration, want ...string) {
		t.Helper()
		var first, last int64
		for _, p := range all[:4] {
			info, err := os.Lstat(filepath.Join(repo, p))
			must(t, err)
			st, _ := statOf(info)
			if first == 0 {
				first = st.Mtime
			}
			first, last = min(first, st.Mtime), max(last, st.Mtime, st.Ctime)
		}
		at := time.Unix(0, last).Add(later)
		if later == 0 {
			at = time.Unix(0, first)
		}
		must(t, os.Chtimes(index, at, at))
		is, err := b.grove().canopy.untouched(t.Context(), b.id, s, all)
		must(t, err)
		wanted := map[string]bool{}
		for _, p := range want {
			if info, err := os.Lstat(filepath.Join(repo, p)); err == nil && info.ModTime().Unix() == at.Unix() { // else git is sure by itself
				wanted[p] = true
			}
		}
		if !maps.Equal(is, wanted) {
			t.Errorf("%s: %v, want %v", when, is, wanted)
		}
	}
	look("the index was written then", 0)
	look("the index was written a nanosecond later", 1, "a.up", "b\n\t.up")
	look("the index was written seconds later, so git itself is sure", 3*time.Second)
	b.write(repo, map[string]string{"a.up": "A\n"})
	look("one was changed, to the same size", 1, "b\n\t.up")
}
