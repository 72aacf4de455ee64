package workspace

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/internal/proc"
	"rnix/runtime/worktree"
	"rnix/types"
)

// Tree is a linked git work tree that belongs to one history, on a branch. Part of the on-disk format.
type Tree struct {
	Dir      string `json:"dir"`                 // its top
	Repo     string `json:"repo"`                // the top of the work tree that it was made from
	Common   string `json:"common"`              // the git directory that both share
	Branch   string `json:"branch,omitempty"`    // as it was made; "" = none
	Base     string `json:"base"`                // the commit at which its work began
	BaseName string `json:"base_name,omitempty"` // what that was called
	Programs string `json:"programs,omitempty"`  // by which git ran programs in the repository then, for News; "" = not known
}

// Planting says which work tree is to be made.
type Planting struct {
	From   string // a directory of the repository, absolute
	Parent string // below which it is made: nothing but this history's things may be there
	Branch string // "" = a new one, called Name or that with a number
	Name   string
	Base   string // at which a new branch begins: whatever git takes for a commit; "" = what is checked out
	Called string // how Base is called; "" = as it is
}

// plantPatience is how long another git is waited for that has locked the repository.
const plantPatience = 200 * time.Millisecond

// plantTries is how often another name is taken for a branch because somebody else, who wanted the same at the same time, was quicker.
const plantTries = 64

// Plant makes a work tree for a history and returns it, with the place in it that stands for p.From. A
// branch that exists is used as it is, and must not be checked out elsewhere. INVALID if p.From is in
// no repository, NOT_FOUND if there is no such commit, CONFLICT if the branch is in use.
func (k *Grove) Plant(ctx context.Context, id types.UUID, p Planting) (t Tree, workDir string, err error) {
	t, r, err := k.plot(ctx, id, p)
	if err != nil {
		return t, "", err
	}
	m, err := k.desks.nursery(id, p.Parent)
	if err != nil {
		return t, "", err
	}
	for try := 1; ; try++ {
		if err = k.desks.noteSeed(id, p, t); err != nil {
			return t, "", err
		}
		t.Dir, err = m.Provision(ctx, worktree.ProvisionSpec{SessionID: id.String(), LeafName: leafOf(r.root), Strategy: worktree.StrategyWorktreeAdd,
			ParentRepoPath: r.root, Branch: t.Branch, NewBranch: p.Branch == "", BaseCommit: t.Base})
		if !errors.Is(err, worktree.ErrBranchTaken) || try == plantTries {
			break
		}
		if t, r, err = k.plot(ctx, id, p); err != nil {
			return t, "", err
		}
	}
	if err != nil {
		return t, "", err
	}
	d := desk{Dir: t.Dir, Ref: Ref{UUID: id, Kind: KindGit, Root: t.Repo}, Common: t.Common}
	if p.Branch == "" {
		d.Branch = t.Branch
	}
	if err := k.desks.note(d); err != nil {
		return t, "", errors.Join(err, m.Teardown(context.WithoutCancel(ctx), id.String()))
	}
	if err := k.desks.forgetSeed(p.Parent); err != nil {
		return t, "", errors.Join(err, m.Teardown(context.WithoutCancel(ctx), id.String()))
	}
	if err := k.canopy.freshFiles(ctx, id, t.Dir, plumbing.Registration(t.Common, t.Dir), false); err != nil {
		return t, "", err
	}
	workDir = t.Dir
	if rel, err := filepath.Rel(r.root, resolve(p.From)); err == nil && filepath.IsLocal(rel) {
		if info, err := os.Stat(filepath.Join(t.Dir, rel)); err == nil && info.IsDir() {
			workDir = filepath.Join(t.Dir, rel)
		}
	}
	return t, workDir, noteAutoruns(ctx, k.Keeper, id, workDir)
}

// noteSeed notes a branch before it is made for a work tree, in place of the note on that: a crash before there is one leaves no branch
// of which nobody knows.
func (k *desks) noteSeed(id types.UUID, p Planting, t Tree) error {
	if p.Branch != "" {
		return nil
	}
	return k.note(desk{Dir: p.Parent, Ref: Ref{UUID: id, Kind: KindGit, Root: t.Repo}, Common: t.Common, Branch: t.Branch})
}

// forgetSeed removes the note of noteSeed.
func (k *desks) forgetSeed(parent string) error {
	if err := os.Remove(k.deskPath(parent)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return storage(parent, err)
	}
	return nil
}

// Fits reports why Plant would make no work tree as things are, with its errors.
func (k *Grove) Fits(ctx context.Context, id types.UUID, p Planting) error {
	_, _, err := k.plot(ctx, id, p)
	return err
}

// plot settles which work tree is to be made, and of which repository.
func (k *Grove) plot(ctx context.Context, id types.UUID, p Planting) (t Tree, r *repo, err error) {
	pl, err := k.locate(ctx, id, p.From)
	if err != nil {
		return t, nil, err
	}
	if pl.repo == nil {
		why := pl.reason
		if why == "" {
			why = pl.refused
		}
		if why == "" {
			why = "it is in no git repository"
			if _, reason, err := k.ask(ctx, id, p.From); err == nil && reason == notATree {
				why = reason
			}
		}
		return t, nil, types.Errorf(types.ErrInvalid, "Worktree", p.From, "there can be no work tree of it: %s; go into a repository, or leave --worktree out", why)
	}
	r = pl.repo
	t = Tree{Repo: r.root, Common: r.common}
	if t.Programs, err = k.git.programs(ctx, id, r.common); err != nil {
		return t, r, err
	}
	t.Branch, t.Base, t.BaseName, err = k.desks.branchFor(ctx, id, r, p)
	t.BaseName = cmp.Or(p.Called, t.BaseName)
	return t, r, err
}

func resolve(path string) string {
	if real, err := filepath.EvalSymlinks(path); err == nil {
		return real
	}
	return filepath.Clean(path)
}

// note writes the note on a workspace.
func (k *desks) note(d desk) error {
	d.Version, d.Time = deskVersion, time.Now().UTC()
	b, err := json.Marshal(d)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Worktree", d.Dir, "%w", err)
	}
	path := k.deskPath(d.Dir)
	if err := mkdir(filepath.Dir(path)); err != nil {
		return err
	}
	return durable.WriteFile(durable.OS, path, append(b, '\n'), durable.Durable)
}

// branchFor settles the branch of a work tree and the commit at which its work begins.
func (k *desks) branchFor(ctx context.Context, id types.UUID, r *repo, p Planting) (branch, base, name string, err error) {
	const op = "Worktree"
	rev := func(what string) string {
		out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + r.gitDir, "rev-parse", "-q", "--verify", "--end-of-options", what + "^{commit}"}})
		if err != nil {
			return ""
		}
		return plumbing.Line(out)
	}
	if name = p.Base; name == "" {
		name = "HEAD"
		if at, err := k.checkedOut(ctx, id, call{args: []string{"--git-dir=" + r.gitDir}}); err == nil {
			base, name = at.head, cmp.Or(at.branch, name)
		}
	} else if !strings.HasPrefix(name, "-") && !strings.ContainsAny(name, "\n\x00") {
		base = rev(name)
	}
	if err := ctx.Err(); err != nil {
		return "", "", "", types.Errorf(types.ErrCancelled, op, r.root, "%w", context.Cause(ctx))
	}
	if base == "" && p.Base == "" {
		return "", "", "", types.Errorf(types.ErrNotFound, op, r.root, "the repository has no commit yet from which a work tree could be made: make one first")
	} else if base == "" {
		return "", "", "", types.Errorf(types.ErrNotFound, op, p.Base, "is no commit of %s: name a branch, a tag or a commit with --base", r.root)
	}
	if branch = p.Branch; branch == "" {
		branch, err = k.freeBranch(ctx, id, r.gitDir, p.Name)
		return branch, base, name, err
	}
	leave, err := worktree.Enter(ctx, r.common, false)
	if err != nil {
		return "", "", "", err
	}
	defer leave()
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + r.gitDir, "for-each-ref", "--format=%(objectname)%00%(worktreepath)", "refs/heads/" + plumbing.EscapeGlob(branch)}})
	if err != nil {
		return "", "", "", err
	}
	tip, where, there := strings.Cut(plumbing.Line(out), "\x00")
	switch {
	case !there:
	case strings.Contains(tip+where, "\n"):
		return "", "", "", types.Errorf(types.ErrConflict, op, branch, "there are branches below it in %s: name another with --branch", r.root)
	case where != "":
		return "", "", "", types.Errorf(types.ErrConflict, op, branch, "the branch is checked out in %s, and two work trees never share one: name another with --branch", where)
	case p.Base != "" && tip != base:
		return "", "", "", types.Errorf(types.ErrConflict, op, branch, "the branch exists, and is not at %s: leave --base out to go on with it, or name another with --branch", p.Base)
	default:
		base, name = tip, branch
	}
	return branch, base, name, nil
}

var leafChars = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[^A-Za-z0-9._-]+`) })

// leafOf is what the directory of a work tree is called: as the repository, as far as that can be.
func leafOf(root string) string {
	leaf := strings.Trim(leafChars().ReplaceAllString(filepath.Base(root), "-"), "-._")
	for strings.Contains(leaf, "..") {
		leaf = strings.ReplaceAll(leaf, "..", ".")
	}
	if leaf = strings.TrimSuffix(leaf[:min(len(leaf), 64)], ".lock"); leaf == "" {
		return "tree"
	}
	return leaf
}

// nursery makes and knows the work tree of a history.
func (k *desks) nursery(id types.UUID, parent string) (*worktree.Manager, error) {
	return worktree.NewManager(worktree.Options{ParentDir: parent, Logger: k.log, EnvCommandRunner: k.runner(id), RetryDelay: plantPatience})
}

// runner runs git for others, with the configuration of the user and what they say.
func (k *git) runner(id types.UUID) worktree.EnvCommandRunner {
	return func(ctx context.Context, extra []string, _ string, args ...string) ([]byte, error) {
		if k.program == "" {
			return nil, types.Errorf(types.ErrUnavailable, "Git", "", "git is not there: %w", k.missing)
		}
		if err := mkdir(k.emptyHome()); err != nil {
			return nil, err
		}
		var out bytes.Buffer
		errs := proc.NewRing(4 << 10)
		c := call{user: true, mine: plumbing.RunsFilters(args), env: extra, args: args}
		started := plumbing.Starting(ctx)
		child, err := k.procs.Start(ctx, k.spec(id, c, &out, errs))
		if err != nil {
			return nil, err
		}
		started(child.PID())
		exit := child.Wait() // until then out is git's
		if err := gitError(ctx, c, exit, errs); err != nil {
			return append(out.Bytes(), errs.String()...), &gitExit{exit.Code, err}
		}
		return out.Bytes(), nil
	}
}

// gitExit is a git that has failed, with its exit status.
type gitExit struct {
	code int
	err  error
}

func (e *gitExit) Error() string { return e.err.Error() }
func (e *gitExit) Unwrap() error { return e.err }

// ExitCode returns the exit status; 0 if it has none.
func (e *gitExit) ExitCode() int { return e.code }

// Uproot removes what is left below parent of a work tree that Plant has made for a history: one that
// was never handed out, or that Remove has removed. Work in it is rescued first.
func (k *Grove) Uproot(ctx context.Context, id types.UUID, parent string) error {
	seed, serr := k.desks.readDesk(parent)
	if err := k.uproot(ctx, id, parent); err != nil || serr != nil {
		return err
	}
	if _, err := k.desks.dropBranch(ctx, seed); err != nil {
		return err
	}
	return k.desks.forgetSeed(parent)
}

func (k *Grove) uproot(ctx context.Context, id types.UUID, parent string) error {
	if _, err := os.Lstat(parent); errors.Is(err, os.ErrNotExist) {
		return nil
	}
	m, err := k.desks.nursery(id, parent)
	if err != nil {
		return err
	}
	if dir, err := m.Path(id.String()); err == nil {
		if _, err := k.Remove(ctx, dir); err != nil && types.CodeOf(err) != types.ErrNotFound {
			return err
		}
	}
	if err := m.Teardown(ctx, id.String()); err != nil {
		return err
	}
	for _, d := range []string{filepath.Join(parent, ".worktrees"), parent} { // they go only if nothing is in them
		_ = os.Remove(d)
	}
	return nil
}

// Remote returns the name and the URL of the remote to which the branch of a work tree would be pushed;
// "" if its repository has none.
func (k *Grove) Remote(ctx context.Context, id types.UUID, t Tree) (name, url string) {
	out, err := k.git.run(ctx, id, call{user: true, args: []string{"--git-dir=" + t.Common, "config", "-z", "--get-regexp", `^remote\..*\.url$`}})
	if err != nil {
		return "", ""
	}
	for _, r := range plumbing.Records(out) {
		key, value, _ := strings.Cut(r, "\n")
		this := strings.TrimSuffix(strings.TrimPrefix(key, "remote."), ".url")
		if name == "" || this == "origin" {
			name, url = this, value
		}
	}
	return name, url
}
