package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// Merged is what Merge has done.
type Merged struct {
	Target  string // the branch that was merged into
	Before  string // its commit before
	Commit  string // and after
	Forward bool   // no commit was needed: the branch was only brought forward
	Already bool   // there was nothing to do
	Files   []FileChange
	Raw     []string // of Files, those that were written as they are in the commit: a filter of the repository itself is not run
}

// MergeError says which files are in the way of a merge.
type MergeError struct {
	Files []string
	Why   string
	Both  bool // both sides have changed the same places: a person has to decide
}

func (e *MergeError) Error() string {
	some := e.Files[:min(len(e.Files), 10)]
	more := ""
	if n := len(e.Files) - len(some); n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return fmt.Sprintf("%s: %s%s", e.Why, strings.Join(some, ", "), more)
}

// Merge merges a commit of a work tree into the branch that is checked out in the work tree that it was
// made from, files and all. It does all of it or nothing: CONFLICT, with a *MergeError that names the
// files, if there are uncommitted changes or both sides have changed the same lines. One that was cut off
// there before is finished or taken back first. No hook runs.
func (k *Grove) Merge(ctx context.Context, id types.UUID, t Tree, commit, message string) (m Merged, err error) {
	c := k.canopy
	r, err := c.targetRepo(ctx, id, t)
	if err != nil {
		return m, err
	}
	k.landings.mu.Lock()
	defer k.landings.mu.Unlock()
	if err := k.landings.settleAt(ctx, r.gitDir); err != nil {
		return m, err
	}
	at, err := c.target(ctx, id, t)
	if err != nil {
		return m, err
	}
	m = Merged{Target: at.branch, Before: at.head, Commit: at.head}
	conf, err := c.config(ctx, id, at.gitDir, true)
	if err != nil {
		return m, err
	}
	env := inert(conf, true)
	fresh, dirty := c.clean(ctx, id, at, env)
	if fresh {
		if err := pastSecond(ctx, at.gitDir); err != nil {
			return m, err
		}
		fresh, dirty = c.clean(ctx, id, at, env)
	}
	base := c.mergeBase(ctx, id, t.Common, at.head, commit)
	switch {
	case dirty != nil && types.CodeOf(dirty) != types.ErrConflict:
		return m, dirty
	case base == commit:
		m.Already = true
		return m, ctx.Err()
	case base == at.head:
		m.Forward, m.Commit = true, commit
	default:
		if m.Commit, err = c.join(ctx, id, at, commit, message); err != nil {
			return m, err
		}
	}
	switch {
	case dirty == nil:
		err = k.landings.land(ctx, id, at, env, m.Commit, fresh)
	case c.landed(ctx, id, at, env, m.Commit): // a merge before this one was cut off when its files were there
		err = c.follow(ctx, id, at, m.Commit)
	default:
		err = dirty
	}
	if err != nil {
		return m, err
	}
	ctx = context.WithoutCancel(ctx) // it is merged: what remains only says so
	trees, err := c.treesOf(ctx, id, t.Common, m.Before, m.Commit)
	if err == nil {
		var s *store
		if s, err = k.storeOf(ctx, id, t.Common, formatOf(trees[0])); err == nil {
			_, m.Files, err = diffGit(ctx, gitSource{git: k.git, id: id, store: s, tree: trees[0]}, gitSource{git: k.git, id: id, store: s, tree: trees[1]}, DiffOpts{NamesOnly: true})
		}
	}
	if err == nil {
		at.Programs = t.Programs
		m.Raw, err = c.unfiltered(ctx, id, at, conf, trees[0], trees[1])
	}
	return m, err
}

// targetRepo finds the work tree that a merge goes into.
func (k *canopy) targetRepo(ctx context.Context, id types.UUID, t Tree) (*repo, error) {
	p, err := k.locate(ctx, id, t.Repo)
	if err != nil {
		return nil, err
	}
	if p.repo == nil || p.repo.common != t.Common || p.repo.root != t.Repo {
		return nil, types.Errorf(types.ErrNotFound, "Merge", t.Repo, "is not the work tree any more from which the agent's was made: merge its branch %s where you want it", t.Branch)
	}
	return p.repo, nil
}

// target finds out what is checked out in the work tree that a merge goes into.
func (k *canopy) target(ctx context.Context, id types.UUID, t Tree) (standing, error) {
	const op = "Merge"
	r, err := k.targetRepo(ctx, id, t)
	if err != nil {
		return standing{}, err
	}
	s := standing{Tree: Tree{Dir: t.Repo, Common: t.Common}, gitDir: r.gitDir}
	if what := unfinished(s.gitDir); what != "" {
		return s, types.Errorf(types.ErrConflict, op, t.Repo, "an operation of git's is half-way there (%s): end it or abort it first", what)
	}
	at, err := k.checkedOut(ctx, id, call{args: []string{"--git-dir=" + s.gitDir}})
	switch s.head, s.branch = at.head, at.branch; {
	case err != nil:
		return s, err
	case s.branch == "":
		return s, types.Errorf(types.ErrInvalid, op, t.Repo, "no branch is checked out there: check one out with: git -C %s switch BRANCH", plumbing.ShellQuote(t.Repo))
	case s.head == "":
		return s, types.Errorf(types.ErrInvalid, op, s.branch, "the branch has no commit yet")
	}
	return s, nil
}

// clean refuses a work tree with changes of its own. A submodule at another commit is none: a merge leaves it where it is, as git's own does, and may
// have brought the work tree there itself, by another commit of it. fresh says that of some files only untouched knows that they have none.
func (k *canopy) clean(ctx context.Context, id types.UUID, s standing, env []string) (fresh bool, err error) {
	out, err := k.run(ctx, id, call{dir: s.Dir, user: true, mine: true, env: env, args: []string{"--git-dir=" + s.gitDir, "--work-tree=" + s.Dir, "status",
		"--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=dirty", "--no-renames"}})
	if err != nil {
		return false, err
	}
	all, odd := plumbing.ParseStatus(out)
	if odd != "" {
		return false, types.Errorf(types.ErrDriver, "Merge", s.Dir, "git status: a line %q that cannot be read", odd)
	}
	var files, changed []string // what is staged or in a conflict, and what may only look changed
	for _, f := range all {
		switch {
		case f.Submodule && (f.XY == ".M" || f.XY == ".D"):
		case f.XY == ".M":
			changed = append(changed, f.Path)
		default:
			files = append(files, f.Path)
		}
	}
	untouched, err := k.untouched(ctx, id, s, changed)
	if err != nil {
		return false, err
	}
	files = append(files, without(changed, untouched)...)
	slices.Sort(files)
	if len(files) > 0 {
		return false, types.Errorf(types.ErrConflict, "Merge", s.Dir, "%w", &MergeError{Files: files, Why: "nothing was merged, since changes there are not committed (commit them, or put them aside with: git -C " + plumbing.ShellQuote(s.Dir) + " stash)"})
	}
	return len(untouched) > 0, nil
}

// Apart returns the files that the user has changed, and not committed, where a work tree was made that begins at what
// is checked out there: they are not in it. nil if it begins elsewhere, or if nobody can say.
func (k *Grove) Apart(ctx context.Context, id types.UUID, t Tree) []string {
	at, err := k.canopy.target(ctx, id, t)
	if err != nil || at.head != t.Base {
		return nil
	}
	conf, err := k.canopy.config(ctx, id, at.gitDir, true)
	if err != nil {
		return nil
	}
	_, err = k.canopy.clean(ctx, id, at, inert(conf, true))
	if e, ok := errors.AsType[*MergeError](err); ok {
		return e.Files
	}
	return nil
}

// mergeBase returns the commit at which two lines of work part: one of them if that led to the other. "" = they have nothing in common.
func (k *canopy) mergeBase(ctx context.Context, id types.UUID, common, a, b string) string {
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + common, "merge-base", a, b}})
	if err != nil {
		return ""
	}
	return plumbing.Line(out)
}

// join makes a commit of both sides, without touching any file.
func (k *canopy) join(ctx context.Context, id types.UUID, at standing, commit, message string) (string, error) {
	conf, err := k.config(ctx, id, at.gitDir, true) // again: it is to be that of now
	if err != nil {
		return "", err
	}
	tree, files, err := k.mergeTree(ctx, id, at, conf, commit)
	if err != nil {
		return "", err
	}
	if len(files) > 0 {
		return "", types.Errorf(types.ErrConflict, "Merge", at.Dir, "%w", &MergeError{Files: files, Why: "nothing was merged, since both sides have changed the same places in", Both: true})
	}
	return k.commitBoth(ctx, id, at, conf, tree, at.head, commit, message)
}

// author returns the author of what goes into the user's branch: the user, as far as a configuration has a name and an address.
func author(c plumbing.Config) []string {
	name, _ := c.Get("user.name")
	email, _ := c.Get("user.email")
	if name == "" || email == "" {
		return nil
	}
	return []string{"GIT_AUTHOR_NAME=" + name, "GIT_COMMITTER_NAME=" + name, "GIT_AUTHOR_EMAIL=" + email, "GIT_COMMITTER_EMAIL=" + email}
}

// land brings the files and the branch of a work tree without changes to a commit. Git looks at all
// files before it writes the first one, and refuses if one would be lost. fresh is what clean has said.
func (k *landings) land(ctx context.Context, id types.UUID, at standing, env []string, commit string, fresh bool) error {
	files, err := k.endangered(ctx, id, at, commit)
	if err == nil {
		err = refuseEndangered(at.Dir, files)
	}
	if err != nil {
		return err
	}
	l := &landing{Version: landingVersion, UUID: id, Dir: at.Dir, GitDir: at.gitDir, Common: at.Common, Branch: at.branch, Before: at.head, Commit: commit,
		Lock: "rnix: merge " + types.NewUUID().String() + "\n"}
	err = k.begin(l)
	if err == nil && fresh {
		if err = l.settled(); err != nil {
			err = errors.Join(err, k.end(l))
		}
	}
	if err != nil {
		return err
	}
	move := func(ctx context.Context, from, to string) error {
		_, err := k.run(ctx, id, call{dir: at.Dir, user: true, mine: true, env: l.env(env), args: l.args("read-tree", "-m", "-u", from, to)})
		return err
	}
	// Files that were written, and are as git has them, count as changed until the index says that it has looked.
	_, err = k.run(ctx, id, call{dir: at.Dir, user: true, mine: true, env: l.env(env), args: l.args("update-index", "-q", "--refresh")})
	if err == nil || types.CodeOf(err) == types.ErrDriver {
		err = move(ctx, at.head, commit)
	}
	after := context.WithoutCancel(ctx) // the files are there, or some of them: now the branch follows, or they go back
	if err == nil {
		err = l.install()
	}
	if err == nil {
		if err = k.follow(after, id, at, commit); err == nil {
			return k.end(l)
		}
		berr := l.copyIndex()
		if berr == nil {
			berr = move(after, commit, at.head)
		}
		if berr == nil {
			berr = l.install()
		}
		if err = errors.Join(err, k.end(l)); berr != nil {
			return types.Errorf(types.ErrConflict, "Merge", at.Dir, "the branch was changed meanwhile, and its files are those of %s now: %w", commit, errors.Join(err, berr))
		}
		return types.Errorf(types.ErrConflict, "Merge", at.Dir, "nothing was merged, since the branch was changed meanwhile: try again: %w", err)
	}
	kept, berr := k.takeBack(after, l, env)
	if berr == nil {
		berr = k.end(l)
	}
	unknown, passedOver := inTheWay(err.Error())
	switch {
	case berr != nil: // the note stays
		return types.Errorf(types.CodeOf(err), "Merge", at.Dir, "nothing was merged, and some files may be those of %s now; the next merge there takes them back: %w", commit, errors.Join(err, berr))
	case len(kept) > 0:
		return types.Errorf(types.ErrConflict, "Merge", at.Dir, "%w", &MergeError{Files: kept, Why: "nothing was merged, since files were changed meanwhile"})
	case types.CodeOf(err) != types.ErrDriver:
		return err
	case len(unknown) > 0:
		return types.Errorf(types.ErrConflict, "Merge", at.Dir, "%w", &MergeError{Files: unknown, Why: "nothing was merged, since files that git does not know would be overwritten"})
	case len(passedOver) > 0:
		return types.Errorf(types.ErrConflict, "Merge", at.Dir, "%w", &MergeError{Files: passedOver,
			Why: "nothing was merged, since files with changes would be overwritten that git was told to ignore (let it see them with: git -C " +
				plumbing.ShellQuote(at.Dir) + " update-index --no-skip-worktree FILE, or the same with --no-assume-unchanged; then commit or stash them)"})
	}
	return types.Errorf(types.ErrConflict, "Merge", at.Dir, "nothing was merged: %w", err)
}

// follow brings the branch to a commit, if it is where it was.
func (k *canopy) follow(ctx context.Context, id types.UUID, at standing, commit string) error {
	_, err := k.run(ctx, id, call{args: []string{"--git-dir=" + at.gitDir, "update-ref", "-m", "rnix: merge", "refs/heads/" + at.branch, commit, at.head}})
	return err
}

// landed reports whether the files of a work tree, and its index, are those of a commit.
func (k *canopy) landed(ctx context.Context, id types.UUID, at standing, env []string, commit string) bool {
	want, err := k.treesOf(ctx, id, at.Common, commit)
	if err != nil {
		return false
	}
	out, err := k.run(ctx, id, call{env: env, args: []string{"--git-dir=" + at.gitDir, "write-tree"}})
	if err != nil || plumbing.Line(out) != want[0] {
		return false
	}
	_, err = k.run(ctx, id, call{dir: at.Dir, user: true, mine: true, env: env, args: []string{"--git-dir=" + at.gitDir, "--work-tree=" + at.Dir, "diff-files", "--quiet", "--ignore-submodules=all"}})
	return err == nil
}

// inTheWay reads the files out of what git says of those that it would overwrite: those that it does not know, and those that have changes which
// it was told to pass over (skip-worktree, assume-unchanged).
func inTheWay(said string) (unknown, passedOver []string) {
	for l := range strings.Lines(said) {
		if _, after, ok := strings.Cut(l, "error: Untracked working tree file '"); ok {
			if name, _, ok := strings.Cut(after, "' would be overwritten"); ok {
				unknown = append(unknown, name)
			}
		}
		if _, after, ok := strings.Cut(l, "error: Entry '"); ok {
			if name, _, ok := strings.Cut(after, "' not uptodate."); ok {
				passedOver = append(passedOver, name)
			}
		}
	}
	return unknown, passedOver
}

// Branch gives a work tree without a branch one of its own, at the commit that is checked out: called
// name, or that with a number. Its files and its index stay as they are.
func (k *Grove) Branch(ctx context.Context, id types.UUID, dir, common, name string) (branch, head string, err error) {
	s, err := k.canopy.stand(ctx, id, Tree{Dir: dir, Common: common})
	if err != nil || s.branch != "" {
		return s.branch, s.head, err
	}
	d, err := k.desks.readDesk(dir)
	if err != nil {
		return "", "", err
	}
	none := strings.Repeat("0", len(s.head))
	for range 10 { // others look for a name at the same time
		if branch, err = k.git.freeBranch(ctx, id, common, name); err != nil {
			return "", "", err
		}
		d.Branch = branch // noted before it is there: a crash leaves no branch that nobody removes
		if err := k.desks.note(d); err != nil {
			return "", "", err
		}
		_, err = k.git.run(ctx, id, call{args: []string{"--git-dir=" + common, "update-ref", "refs/heads/" + branch, s.head, none}})
		if err == nil || types.CodeOf(err) != types.ErrDriver {
			break
		}
	}
	if err == nil {
		_, err = k.git.run(ctx, id, call{args: []string{"--git-dir=" + s.gitDir, "symbolic-ref", "-m", "rnix: its own branch", "HEAD", "refs/heads/" + branch}})
	}
	return branch, s.head, err
}
