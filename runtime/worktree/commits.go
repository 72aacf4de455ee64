package worktree

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
)

// commits looks for commits of a work tree that nobody else has: those that are neither on a remote
// nor on another branch nor under a tag, and those that were checked out once and that nothing but the
// log of this work tree holds.
func (l *look) commits() {
	if !l.head() {
		return
	}
	var others []string
	if l.h.Branch != "" {
		others = append(others, "--exclude="+plumbing.EscapeGlob(l.h.Branch))
	}
	others = append(others, "--branches", "--remotes", "--tags")
	if l.h.Head != "" {
		l.h.Unpublished, _ = l.list(append([]string{l.h.Head, "--not"}, others...))
	}
	l.logged()
}

// head finds out which commit is checked out. There may be none yet.
func (l *look) head() bool {
	if l.err != nil {
		return false
	}
	b, err := l.git(l.ctx, nil, append(slices.Clone(l.where), "rev-parse", "--quiet", "--verify", "HEAD^{commit}")...)
	if err == nil {
		l.h.Head = string(objectName().Find(b))
		return true
	}
	if exited(err, 1) {
		if l.h.Branch != "" {
			return true // a branch without a commit
		}
		if out, ok := l.run("for-each-ref", "--count=1", "--format=%(objectname)"); ok && out == "" {
			return true // an empty repository
		}
	}
	l.unknown("what is checked out cannot be read: %v", err)
	return false
}

// logged looks at the commits in the log of what was checked out that no reference holds. Those of the
// branch stay in the branch's own log.
func (l *look) logged() {
	was, ok := l.log(l.at.GitDir, "HEAD")
	if !ok {
		return
	}
	if l.h.Branch != "" {
		kept, ok := l.log(l.at.Common, "refs/heads/"+l.h.Branch)
		if !ok {
			return
		}
		was = slices.DeleteFunc(was, func(c string) bool { return slices.Contains(kept, c) })
	}
	slices.Sort(was)
	was = slices.Compact(was)
	if len(was) > maxLost {
		l.unknown("more than %d commits were checked out there, too many to look at", maxLost)
		return
	}
	if len(was) > 0 {
		l.h.Abandoned, _ = l.list(append(was, "--ignore-missing", "--not", "--branches", "--remotes", "--tags"))
	}
}

// log returns the commits at which a reference was, by the log that a git directory has of it. Git is asked where that is more than a file with lines
// as git writes them.
func (l *look) log(gitDir, ref string) (was []string, ok bool) {
	if filepath.IsLocal(ref) && !plumbing.Reftable(gitDir) {
		moves, whole, err := plumbing.ReadLog(gitDir, ref)
		for _, m := range moves {
			was = append(was, m.To)
		}
		if whole || os.IsNotExist(err) {
			return was, true
		}
	}
	out, ok := l.run("reflog", "show", "--format=%H", ref, "--")
	return strings.Fields(out), ok
}

// list returns commits, at most one more than are looked at.
func (l *look) list(which []string) ([]string, bool) {
	out, ok := l.run(slices.Concat([]string{"rev-list", fmt.Sprint("--max-count=", maxLost+1)}, which, []string{"--"})...)
	return append([]string(nil), strings.Fields(out)...), ok
}

// leftBehind says what the git directory of a work tree holds whose files were removed by hand:
// commits, and files that were staged.
func (m *Manager) leftBehind(ctx context.Context, r *record) ([]string, error) {
	l := &look{runner: m.git, ctx: ctx, at: Place{Dir: r.Path, GitDir: r.GitDir, Common: r.Common, Strategy: StrategyWorktreeAdd}, h: &Holdings{Strategy: StrategyWorktreeAdd},
		where: []string{"--no-replace-objects", "--git-dir=" + r.GitDir}}
	if why, err := plumbing.Locked(r.GitDir); err == nil {
		l.h.Locked = &why
	}
	l.h.Halfway = plumbing.Halfway(r.GitDir)
	l.inside(nil)
	conf, err := m.git.configOf(ctx, l.where...)
	if err != nil && !failed(err) {
		return nil, err
	}
	l.conf, l.h.Branch = conf, plumbing.Branch(r.GitDir)
	head, err := m.git.git(ctx, conf.quiet, append(slices.Clone(l.where), "rev-parse", "--quiet", "--verify", "HEAD^{commit}")...)
	switch {
	case err == nil:
		l.h.Abandoned, _ = l.list([]string{string(objectName().Find(head)), "--not", "--branches", "--remotes", "--tags"})
		if len(l.h.Abandoned) == 0 {
			l.logged()
		}
		if _, err := m.git.git(ctx, conf.quiet, append(slices.Clone(l.where), "diff-index", "--cached", "--quiet", "--ignore-submodules=none", "HEAD", "--")...); exited(err, 1) {
			l.unknown("files were staged there that are in no commit")
		} else if err != nil {
			l.unknown("what was staged there cannot be read: %v", err)
		}
	case !failed(err):
		return nil, err
	default:
		if _, err := os.Stat(filepath.Join(r.GitDir, "index")); err == nil {
			l.unknown("what was checked out there cannot be read")
		}
	}
	return l.h.Reasons(), l.err
}
