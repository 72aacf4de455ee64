package worktree

import (
	"context"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// commits looks for commits of a work tree that nobody else has: those that are neither on a remote
// nor on another branch nor under a tag, and those that were checked out once and that nothing but the
// log of this work tree holds.
func (l *look) commits() {
	head, ok := l.head()
	if !ok {
		return
	}
	branch := l.branch()
	var others []string
	if branch != "" {
		others = append(others, "--exclude="+escapePattern(branch))
	}
	others = append(others, "--branches", "--remotes", "--tags")
	if head != "" {
		l.count(append([]string{head, "--not"}, others...), "commits are on its branch only, and on no remote")
	}
	l.logged(branch)
}

// head returns the commit that is checked out; "" = there is none yet.
func (l *look) head() (string, bool) {
	out, ok := l.run("for-each-ref", "--count=1", "--format=%(objectname)") // git answers, so a failure below is about HEAD
	if !ok {
		return "", false
	}
	b, err := l.Manager.git.git(l.ctx, nil, append(slices.Clone(l.git), "rev-parse", "--quiet", "--verify", "HEAD^{commit}")...)
	switch {
	case err == nil:
		return string(objectName().Find(b)), true
	case exited(err, 1) && out == "":
		return "", true // an empty repository
	case exited(err, 1) && l.branch() != "":
		return "", true // a branch without a commit
	}
	l.add("what is checked out cannot be read: %v", err)
	return "", false
}

// logged looks at the commits in the log of what was checked out that no reference holds. Those of the
// branch stay in the branch's own log.
func (l *look) logged(branch string) {
	if _, err := os.Stat(filepath.Join(l.dir, "logs", "HEAD")); err != nil {
		return
	}
	out, ok := l.run("reflog", "show", "--format=%H", "HEAD", "--")
	if !ok {
		return
	}
	was := strings.Fields(out)
	if branch != "" {
		log, ok := l.run("reflog", "show", "--format=%H", "refs/heads/"+branch, "--")
		if !ok {
			return
		}
		kept := strings.Fields(log)
		was = slices.DeleteFunc(was, func(c string) bool { return slices.Contains(kept, c) })
	}
	slices.Sort(was)
	was = slices.Compact(was)
	if len(was) > maxLost {
		l.add("more than %d commits were checked out there, too many to look at", maxLost)
		return
	}
	if len(was) > 0 {
		l.count(append(was, "--not", "--branches", "--remotes", "--tags"), "commits were made there that no branch holds")
	}
}

// count adds a reason if a list of commits is not empty.
func (l *look) count(list []string, what string) {
	if out, ok := l.run(append([]string{"rev-list", "--count"}, append(list, "--")...)...); ok {
		if n := strings.TrimSpace(out); n != "0" {
			l.add("%s %s", n, what)
		}
	}
}

// published looks for commits of a clone that its remote has not, as far as the clone has heard of it:
// of all references, and of the logs of what they were.
func (l *look) published() {
	out, ok := l.run("for-each-ref", "--format=%(objectname) %(refname)", "refs/tags")
	if !ok {
		return
	}
	theirs := map[string]bool{}
	for _, t := range l.rec.Tags {
		theirs[t] = true
	}
	var mine []string
	for line := range strings.Lines(out) {
		if t := strings.TrimSuffix(line, "\n"); !theirs[t] {
			name, _, _ := strings.Cut(t, " ")
			mine = append(mine, name)
		}
	}
	if len(mine) > maxLost {
		l.add("it has %d tags that its remote did not have", len(mine))
	} else if len(mine) > 0 {
		l.count(append(mine, "--not", "--remotes"), "commits are under tags only that its remote did not have")
	}
	if head, ok := l.head(); ok && head != "" {
		l.count([]string{"HEAD", "--exclude=refs/tags/*", "--exclude=refs/remotes/*", "--all", "--reflog", "--not", "--remotes", "--tags"}, "commits are in it that its remote does not have")
	}
}

// escapePattern makes a name mean itself in a pattern of git's.
func escapePattern(s string) string {
	return strings.NewReplacer(`\`, `\\`, "*", `\*`, "?", `\?`, "[", `\[`).Replace(s)
}

// leftBehind says what the git directory of a work tree holds whose files were removed by hand:
// commits, and files that were staged.
func (m *Manager) leftBehind(ctx context.Context, r *record) ([]string, error) {
	l := &look{Manager: m, ctx: ctx, rec: r, dir: r.GitDir, git: []string{"--git-dir=" + r.GitDir}}
	if why, err := os.ReadFile(filepath.Join(r.GitDir, "locked")); err == nil {
		l.add("its work tree is locked (%q)", strings.TrimSpace(string(why)))
	}
	l.operations()
	if _, err := os.Lstat(filepath.Join(r.GitDir, "modules")); err == nil {
		l.add("repositories of submodules are left")
	}
	conf, err := m.configOf(ctx, l.git...)
	if err != nil && !failed(err) {
		return nil, err
	}
	l.quiet = conf.quiet
	head, err := m.git.git(ctx, l.quiet, append(slices.Clone(l.git), "rev-parse", "--quiet", "--verify", "HEAD^{commit}")...)
	switch {
	case err == nil:
		l.count([]string{string(objectName().Find(head)), "--not", "--branches", "--remotes", "--tags"}, "commits were made there that no branch holds")
		l.logged(l.branch())
		if _, err := m.git.git(ctx, l.quiet, append(slices.Clone(l.git), "diff-index", "--cached", "--quiet", "--ignore-submodules=none", "HEAD", "--")...); exited(err, 1) {
			l.add("files were staged there that are in no commit")
		} else if err != nil {
			l.add("what was staged there cannot be read: %v", err)
		}
	case !failed(err):
		return nil, err
	default:
		if _, err := os.Stat(filepath.Join(r.GitDir, "index")); err == nil {
			l.add("what was checked out there cannot be read")
		}
	}
	return l.why, l.err
}
