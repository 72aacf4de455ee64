package worktree

import (
	"context"
	"os"
	"path/filepath"
	"strings"

	"rnix/types"
)

// initializing is why git itself locks a work tree that it is adding.
const initializing = "initializing"

// Adding reports whether git has not finished to add the work tree with a git directory: it was cut off, or is at it.
func Adding(gitDir string) bool {
	why, err := os.ReadFile(filepath.Join(gitDir, "locked"))
	return err == nil && strings.TrimSpace(string(why)) == initializing
}

// Registration returns the git directory under which a repository, named by its common git directory,
// knows a work tree at a path; "" if it knows none. It reads what git keeps there, so it sees also what
// git does not list, and whether the work tree is there does not matter.
func Registration(common, path string) string {
	entries, err := os.ReadDir(filepath.Join(common, "worktrees"))
	if err != nil {
		return ""
	}
	for _, e := range entries {
		dir := filepath.Join(common, "worktrees", e.Name())
		if pointer(filepath.Join(dir, "gitdir"), "", dir) == filepath.Join(path, ".git") {
			return dir
		}
	}
	return ""
}

// Fault says in which file the registration of the work tree at path in the repository with that common git directory is damaged,
// and what helps; "" = nothing is wrong with it that is known.
func Fault(common, path string) string {
	common, path = resolved(common), resolved(path)
	if _, err := os.Stat(common); os.IsNotExist(err) {
		return "its repository is not at " + common + " any more: move that back if it was moved"
	}
	dir := Registration(common, path)
	if dir == "" {
		return "no directory in " + filepath.Join(common, "worktrees") + " leads to it; its files are as they were"
	}
	for _, f := range []struct{ file, word, from, want, text string }{
		{filepath.Join(path, ".git"), "gitdir: ", path, dir, "gitdir: " + dir},
		{filepath.Join(dir, "commondir"), "", dir, common, "../.."},
	} {
		if pointer(f.file, f.word, f.from) != f.want {
			return f.file + " was removed or overwritten; its line is: " + f.text
		}
	}
	if b, err := os.ReadFile(filepath.Join(dir, "HEAD")); err != nil || len(strings.TrimSpace(string(b))) == 0 {
		return filepath.Join(dir, "HEAD") + " is missing or empty; its line is: ref: refs/heads/BRANCH"
	}
	return ""
}

// dropStale takes a registration away whose work tree is not there any more, from the place where one
// is about to be made: git would refuse. One that holds commits or staged files that are nowhere else
// is an error.
func (p *attempt) dropStale(ctx context.Context) error {
	gitDir := Registration(p.rec.Common, p.rec.Path)
	if gitDir == "" {
		return nil
	}
	if _, err := os.Lstat(p.rec.Path); err == nil {
		return occupied(p.rec.Path)
	}
	old := *p.rec
	old.GitDir = gitDir
	why, err := p.leftBehind(ctx, &old)
	if err != nil {
		return err
	}
	if len(why) > 0 {
		return parked(&old, why)
	}
	return p.unregister(ctx, &old)
}

// unregister makes a repository forget a work tree whose directory is gone.
func (m *Manager) unregister(ctx context.Context, r *record) error {
	gitDir := Registration(r.Common, r.Path)
	if gitDir == "" {
		return nil
	}
	leave, err := shared.enter(ctx, r.Common, true)
	if err != nil {
		return err
	}
	defer leave()
	if why, err := os.ReadFile(filepath.Join(gitDir, "locked")); err == nil {
		if strings.TrimSpace(string(why)) != initializing || r.State != stateClaimed {
			return parked(r, []string{"its work tree is locked: " + strings.TrimSpace(string(why))})
		}
		if _, err := m.git.git(ctx, nil, "-C", r.Parent, "worktree", "unlock", r.Path); err != nil {
			return types.Errorf(types.ErrDriver, "Remove", r.Path, "%w", err)
		}
	}
	_, err = m.git.git(ctx, nil, "-C", r.Parent, "worktree", "remove", "--", r.Path)
	if err != nil && Registration(r.Common, r.Path) != "" {
		return types.Errorf(types.ErrDriver, "Remove", r.Path, "%w", err)
	}
	return nil
}
