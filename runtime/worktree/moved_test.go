package worktree

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"rnix/types"
)

// Moved finds a checkout after its parent directory was renamed, with absolute and with relative paths in git's files, and
// touches nothing that has the old name now. A copy is not taken for it.
func TestACheckoutIsFoundAfterItsParentDirectoryWasRenamed(t *testing.T) {
	for _, kind := range []string{"absolute", "relative", "taken"} {
		t.Run(kind, func(t *testing.T) {
			_, clone := origin(t)
			top := t.TempDir()
			m := manager(t, Options{ParentDir: filepath.Join(top, "old")})
			path := added(t, m, clone, "s")
			if kind == "relative" {
				write(t, filepath.Join(path, ".git"), "gitdir: ../../../../gone/worktrees/s\n")
			}
			dir := m.ParentDir()
			now := filepath.Join(filepath.Dir(dir), "new")
			if err := os.Rename(dir, now); err != nil {
				t.Fatal(err)
			}
			if kind == "taken" {
				write(t, filepath.Join(path, "theirs.txt"), "theirs")
			}
			again := manager(t, Options{ParentDir: now})
			for range 2 {
				if err := again.Moved(t.Context(), "s"); err != nil {
					t.Fatal(err)
				}
			}
			want := filepath.Join(now, filepath.Base(path))
			if p, err := again.Path("s"); p != want || err != nil {
				t.Errorf("Path = %s, %v", p, err)
			}
			if list := git(t, clone, "worktree", "list"); !strings.Contains(list, want+" ") || strings.Contains(list, path+" ") {
				t.Errorf("git knows %s", list)
			}
			if s := git(t, want, "status", "--porcelain"); strings.TrimSpace(s) != "" {
				t.Errorf("git status says %q", s)
			}
			if err := again.Teardown(t.Context(), "s"); err != nil || exists(want) {
				t.Errorf("Teardown: %v", err)
			}
			if entries, err := os.ReadDir(path); kind == "taken" && (err != nil || len(entries) != 1) {
				t.Errorf("what has the old name has %v, %v", entries, err)
			}
		})
	}
}

func TestACopyOfACheckoutIsNotTakenForIt(t *testing.T) {
	_, clone := origin(t)
	top := t.TempDir()
	m := manager(t, Options{ParentDir: filepath.Join(top, "old")})
	path := added(t, m, clone, "s")
	now := filepath.Join(top, "new")
	if err := os.CopyFS(now, os.DirFS(m.ParentDir())); err != nil {
		t.Fatal(err)
	}
	again := manager(t, Options{ParentDir: now})
	if err := again.Moved(t.Context(), "s"); types.CodeOf(err) != types.ErrConflict {
		t.Errorf("Moved = %v", err)
	}
	if list := git(t, clone, "worktree", "list"); !strings.Contains(list, path+" ") {
		t.Errorf("git knows %s", list)
	}
}
