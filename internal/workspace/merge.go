package workspace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

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
	at, err := c.target(ctx, id, t)
	if err != nil {
		return m, err
	}
	k.landings.mu.Lock()
	defer k.landings.mu.Unlock()
	if err := k.landings.settleAt(ctx, at.gitDir); err != nil {
		return m, err
	}
	if at, err = c.target(ctx, id, t); err != nil { // one that was cut off may have been finished
		return m, err
	}
	m = Merged{Target: at.branch, Before: at.head, Commit: at.head}
	env, err := c.inert(ctx, id, at.gitDir, true)
	if err != nil {
		return m, err
	}
	fresh, dirty := c.clean(ctx, id, at, env)
	if fresh {
		if err := pastSecond(ctx, at.gitDir); err != nil {
			return m, err
		}
		fresh, dirty = c.clean(ctx, id, at, env)
	}
	switch {
	case dirty != nil && types.CodeOf(dirty) != types.ErrConflict:
		return m, dirty
	case c.above(ctx, id, t.Common, commit, at.head):
		m.Already = true
		return m, ctx.Err()
	case c.above(ctx, id, t.Common, at.head, commit):
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
		m.Raw, err = c.unfiltered(ctx, id, at, trees[0], trees[1])
	}
	return m, err
}

// target finds the work tree that a merge goes into, and its branch.
func (k *canopy) target(ctx context.Context, id types.UUID, t Tree) (standing, error) {
	const op = "Merge"
	p, err := k.locate(ctx, id, t.Repo)
	if err != nil {
		return standing{}, err
	}
	if p.repo == nil || p.repo.common != t.Common || p.repo.root != t.Repo {
		return standing{}, types.Errorf(types.ErrNotFound, op, t.Repo, "is not the work tree any more from which the agent's was made: merge its branch %s where you want it", t.Branch)
	}
	s := standing{Tree: Tree{Dir: t.Repo, Common: t.Common}, gitDir: p.repo.gitDir}
	if what := unfinished(s.gitDir); what != "" {
		return s, types.Errorf(types.ErrConflict, op, t.Repo, "an operation of git's is half-way there (%s): end it or abort it first", what)
	}
	if s.branch, err = k.branchIn(ctx, id, s.gitDir); types.CodeOf(err) == types.ErrDriver {
		return s, types.Errorf(types.ErrInvalid, op, t.Repo, "no branch is checked out there: check one out with: git -C %s switch BRANCH", ShellQuote(t.Repo))
	}
	if err != nil {
		return s, err
	}
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + s.gitDir, "rev-parse", "-q", "--verify", "HEAD^{commit}"}})
	if err != nil {
		return s, types.Errorf(types.ErrInvalid, op, s.branch, "the branch has no commit yet")
	}
	s.head = line(out)
	return s, nil
}

// clean refuses a work tree with changes of its own. A submodule at another commit is none: a merge leaves it where it is, as git's own does, and may
// have brought the work tree there itself, by another commit of it. fresh says that of some files only untouched knows that they have none.
func (k *canopy) clean(ctx context.Context, id types.UUID, s standing, env []string) (fresh bool, err error) {
	out, err := k.run(ctx, id, call{dir: s.Dir, user: true, env: env, args: []string{"--git-dir=" + s.gitDir, "--work-tree=" + s.Dir, "status",
		"--porcelain=v2", "-z", "--untracked-files=no", "--ignore-submodules=dirty", "--no-renames"}})
	if err != nil {
		return false, err
	}
	var files, changed []string // what is staged or in a conflict, and what may only look changed
	for _, r := range records(out) {
		fields := 9 // see "Porcelain Format Version 2" of git-status
		if strings.HasPrefix(r, "u ") {
			fields = 11
		}
		f := strings.SplitN(r, " ", fields)
		if len(f) < fields || f[2][0] == 'S' && (f[1] == ".M" || f[1] == ".D") {
			continue
		}
		if f[1] == ".M" {
			changed = append(changed, f[fields-1])
		} else {
			files = append(files, f[fields-1])
		}
	}
	untouched, err := k.untouched(ctx, id, s, changed)
	if err != nil {
		return false, err
	}
	files = append(files, without(changed, untouched)...)
	slices.Sort(files)
	if len(files) > 0 {
		return false, types.Errorf(types.ErrConflict, "Merge", s.Dir, "%w", &MergeError{Files: files, Why: "nothing was merged, since changes there are not committed (commit them, or put them aside with: git -C " + ShellQuote(s.Dir) + " stash)"})
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
	env, err := k.canopy.inert(ctx, id, at.gitDir, true)
	if err != nil {
		return nil
	}
	_, err = k.canopy.clean(ctx, id, at, env)
	if e, ok := errors.AsType[*MergeError](err); ok {
		return e.Files
	}
	return nil
}

// above reports whether a commit is b, or one that led to b.
func (k *canopy) above(ctx context.Context, id types.UUID, common, a, b string) bool {
	_, err := k.run(ctx, id, call{args: []string{"--git-dir=" + common, "merge-base", "--is-ancestor", a, b}})
	return err == nil
}

// join makes a commit of both sides, without touching any file.
func (k *canopy) join(ctx context.Context, id types.UUID, at standing, commit, message string) (string, error) {
	env, err := k.inert(ctx, id, at.gitDir, false)
	if err != nil {
		return "", err
	}
	out, err := k.run(ctx, id, call{dir: at.Dir, env: env, args: []string{"--git-dir=" + at.gitDir, "--work-tree=" + at.Dir, "merge-tree", "--write-tree", "-z", "--name-only", "--no-messages", at.head, commit}})
	names := records(out)
	if types.CodeOf(err) == types.ErrDriver && len(names) > 1 {
		return "", types.Errorf(types.ErrConflict, "Merge", at.Dir, "%w", &MergeError{Files: names[1:], Why: "nothing was merged, since both sides have changed the same places in", Both: true})
	}
	if err != nil {
		return "", types.Errorf(types.CodeOf(err), "Merge", at.Dir, "nothing was merged; git 2.38 or newer is needed: %w", err)
	}
	out, err = k.run(ctx, id, call{input: []byte(message), env: k.identity(ctx, id, at), args: []string{"--git-dir=" + at.gitDir, "commit-tree", names[0], "-p", at.head, "-p", commit}})
	return line(out), err
}

// identity returns the author of what goes into the user's branch: the user, as far as git knows a name and an address.
func (k *canopy) identity(ctx context.Context, id types.UUID, at standing) []string {
	var env []string
	for key, vars := range map[string][]string{"user.name": {"GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"}, "user.email": {"GIT_AUTHOR_EMAIL", "GIT_COMMITTER_EMAIL"}} {
		out, err := k.run(ctx, id, call{user: true, args: []string{"--git-dir=" + at.gitDir, "config", "--get", key}})
		if err != nil || line(out) == "" {
			return nil
		}
		for _, v := range vars {
			env = append(env, v+"="+line(out))
		}
	}
	return env
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
		_, err := k.run(ctx, id, call{dir: at.Dir, user: true, env: l.env(env), args: l.args("read-tree", "-m", "-u", from, to)})
		return err
	}
	// Files that were written, and are as git has them, count as changed until the index says that it has looked.
	_, err = k.run(ctx, id, call{dir: at.Dir, user: true, env: l.env(env), args: l.args("update-index", "-q", "--refresh")})
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
				ShellQuote(at.Dir) + " update-index --no-skip-worktree FILE, or the same with --no-assume-unchanged; then commit or stash them)"})
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
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + at.gitDir, "write-tree"}})
	if err != nil || line(out) != want[0] {
		return false
	}
	_, err = k.run(ctx, id, call{dir: at.Dir, user: true, env: env, args: []string{"--git-dir=" + at.gitDir, "--work-tree=" + at.Dir, "diff-files", "--quiet", "--ignore-submodules=all"}})
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
