package worktree

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/types"
)

// maxLost is how many commits that no reference holds are looked at. More are a reason to keep a
// checkout.
const maxLost = 256

// look is one look at a checkout: what stands against its removal.
type look struct {
	*Manager
	ctx   context.Context
	rec   *record
	dir   string   // its git directory
	git   []string // how git is told where it is
	quiet []pair
	why   []string
	err   error // of the first git that could not be run
}

// reasons says why a checkout must not be removed: read from git and the disk now, not from memory. An
// error says that nobody knows.
func (m *Manager) reasons(ctx context.Context, r *record) ([]string, error) {
	l := &look{Manager: m, ctx: ctx, rec: r}
	if pid := workerIn(r.Path); pid != 0 {
		l.add("process %d works there", pid)
	}
	if r.Strategy == StrategyEmpty {
		l.files()
		return l.why, l.err
	}
	if !l.place() {
		return l.why, l.err
	}
	conf, err := m.configOf(ctx, l.git...)
	if err != nil {
		return nil, err
	}
	l.quiet = conf.quiet
	l.nested()
	l.status()
	l.hidden()
	l.operations()
	l.stash()
	if r.Strategy == StrategyWorktreeAdd {
		l.locked()
		l.ownRefs()
		l.commits()
	} else {
		l.published()
	}
	return l.why, l.err
}

func (l *look) add(format string, args ...any) { l.why = append(l.why, fmt.Sprintf(format, args...)) }

// run asks git. ok is false if it could not say.
func (l *look) run(args ...string) (out string, ok bool) {
	if l.err != nil {
		return "", false
	}
	b, err := l.Manager.git.git(l.ctx, l.quiet, append(slices.Clone(l.git), args...)...)
	if err == nil {
		return string(b), true
	}
	if failed(err) {
		l.add("git cannot say what is in it: %v", err)
		return "", false
	}
	l.err = types.Errorf(types.CodeOf(err), "Teardown", l.rec.Path, "%w", err)
	return "", false
}

// place finds the git directory, and says whether it is the one that was made.
func (l *look) place() bool {
	top := l.rec.Path
	gitDir := gitDirOf(top)
	if l.rec.Strategy == StrategyClone {
		if gitDir != filepath.Join(resolved(top), ".git") {
			l.add("its .git is not the repository that was made there")
			return false
		}
	} else if gitDir == "" || gitDir != l.rec.GitDir || commonOf(gitDir) != l.rec.Common || filepath.Dir(gitDir) != filepath.Join(l.rec.Common, "worktrees") {
		l.add("its .git does not lead to the repository of which it is a work tree")
		return false
	}
	l.dir, l.git = gitDir, []string{"-C", top, "--git-dir=" + gitDir, "--work-tree=" + top}
	return true
}

// files lists what is in an empty directory.
func (l *look) files() {
	entries, err := os.ReadDir(l.rec.Path)
	if err != nil {
		l.err = types.Errorf(types.ErrStorage, "Teardown", l.rec.Path, "%w", err)
	}
	var names []string
	for _, e := range entries {
		if !isHarness(e.Name()) {
			names = append(names, e.Name())
		}
	}
	l.list("files are in it", names)
}

// list adds a reason with some of the paths that it is about.
func (l *look) list(what string, paths []string) {
	if len(paths) == 0 {
		return
	}
	some := paths[:min(len(paths), 3)]
	more := ""
	if len(paths) > len(some) {
		more = fmt.Sprintf(" and %d more", len(paths)-len(some))
	}
	l.add("%s: %q%s", what, some, more)
}

// nested looks for other repositories.
func (l *look) nested() {
	var found []string
	err := filepath.WalkDir(l.rec.Path, func(p string, e fs.DirEntry, err error) error {
		if err == nil && e.Name() == ".git" && filepath.Dir(p) != l.rec.Path {
			found = append(found, filepath.Dir(p))
		}
		if err == nil && e.IsDir() && e.Name() == ".git" {
			return filepath.SkipDir
		}
		return err
	})
	if err != nil {
		l.add("it cannot be read: %v", err)
	}
	l.list("it holds other repositories", found)
	for _, name := range []string{"modules", "worktrees"} {
		if entries, err := os.ReadDir(filepath.Join(l.dir, name)); err == nil && len(entries) > 0 {
			l.add("its repository holds others (%s)", name)
		}
	}
}

// status looks for files that are not in the commit, or not as they are there.
func (l *look) status() {
	out, ok := l.run("status", "--porcelain=v1", "-z", "--untracked-files=all", "--ignored=traditional", "--ignore-submodules=dirty", "--no-renames") // nested has looked for what is in these
	if !ok {
		return
	}
	var changed, untracked, ignored []string
	for line := range strings.SplitSeq(out, "\x00") {
		if line == "" {
			continue
		}
		state, path := line, ""
		if len(line) > 3 {
			state, path = line[:2], line[3:]
		}
		switch {
		case (state == "??" || state == "!!") && isHarness(path):
		case state == "??":
			untracked = append(untracked, path)
		case state == "!!":
			ignored = append(ignored, path)
		default:
			changed = append(changed, path)
		}
	}
	l.list("files are changed and not committed", changed)
	l.list("files are not under version control", untracked)
	l.list("git ignores files in it", ignored)
}

// hidden looks for files that git was told to take for unchanged.
func (l *look) hidden() {
	out, ok := l.run("ls-files", "-v", "-z")
	if !ok {
		return
	}
	var found []string
	for line := range strings.SplitSeq(out, "\x00") {
		tag, path, ok := strings.Cut(line, " ")
		if !ok {
			continue
		}
		if tag != strings.ToUpper(tag) {
			found = append(found, path)
		} else if tag == "S" {
			if _, err := os.Lstat(filepath.Join(l.rec.Path, path)); err == nil {
				found = append(found, path)
			}
		}
	}
	l.list("git was told not to look at files", found)
}

// halfway are the files of operations of git's that have not ended.
var halfway = []string{"MERGE_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "BISECT_LOG", "rebase-merge", "rebase-apply", "sequencer"}

// operations looks for what git was in the middle of.
func (l *look) operations() {
	for _, name := range halfway {
		if _, err := os.Lstat(filepath.Join(l.dir, name)); err == nil {
			l.add("an operation of git's is half-way (%s)", name)
		}
	}
}

// stash looks for what was stashed there. The stash is one for all work trees, and says on which
// branch an entry was made.
func (l *look) stash() {
	out, ok := l.run("for-each-ref", "--format=%(refname)", "refs/stash")
	if !ok || !strings.Contains(out, "refs/stash") {
		return
	}
	if l.rec.Strategy == StrategyClone {
		l.add("something is stashed")
		return
	}
	out, ok = l.run("reflog", "show", "--format=%gs", "refs/stash", "--")
	if !ok {
		return
	}
	branch := l.branch()
	if branch == "" {
		branch = "(no branch)"
	}
	for line := range strings.Lines(out) {
		if strings.HasPrefix(line, "WIP on "+branch+": ") || strings.HasPrefix(line, "On "+branch+": ") {
			l.add("something is stashed on its branch")
			return
		}
	}
}

// branch returns the branch that is checked out; "" = none.
func (l *look) branch() string {
	if b, err := os.ReadFile(filepath.Join(l.dir, "HEAD")); err == nil {
		if name, ok := strings.CutPrefix(strings.TrimSpace(string(b)), "ref: refs/heads/"); ok {
			return name
		}
	}
	return ""
}

// locked asks whether somebody has locked the work tree. Git cannot list the work trees while one is
// half registered.
func (l *look) locked() {
	leave, err := shared.enter(l.ctx, l.rec.Common, false)
	if err != nil {
		if l.err == nil {
			l.err = err
		}
		return
	}
	defer leave()
	list, err := l.worktrees(l.ctx, l.rec.Parent)
	if err != nil {
		l.add("git does not list the work trees of its repository: %v", err)
		return
	}
	i := slices.IndexFunc(list, func(w linked) bool { return w.path == l.rec.Path })
	switch {
	case i < 0:
		l.add("its repository does not know it")
	case list[i].locked:
		l.add("its work tree is locked (%q)", list[i].why)
	}
}

// ownRefs looks for references that belong to the work tree alone.
func (l *look) ownRefs() {
	if out, ok := l.run("for-each-ref", "--format=%(refname)", "refs/worktree", "refs/bisect", "refs/rewritten"); ok && strings.TrimSpace(out) != "" {
		l.list("it has references of its own", strings.Fields(out))
	}
}
