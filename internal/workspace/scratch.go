package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// Grove makes git work trees for histories, looks at them and brings their work together. Safe for
// concurrent use.
type Grove struct {
	*Keeper
	canopy   *canopy
	landings *landings
	looks    looks
}

// NewGrove returns the work trees of the histories whose files k keeps.
func NewGrove(k *Keeper) *Grove {
	c := &canopy{k.survey}
	return &Grove{Keeper: k, canopy: c, landings: &landings{canopy: c, opened: time.Now()}, looks: looks{time: stateTime, under: map[string]*look{}, slow: map[string]*gitState{}, failed: map[string]bool{}}}
}

// canopy looks at the work trees of histories and brings their work together. What git is told to do
// there runs no hook, no filter, no driver for diffs or merges, and signs nothing.
type canopy struct {
	*survey
}

// inert returns what switches off the programs that a configuration names for files: filters, and ways of
// merging, which become conflicts. With mine, those that the user's own configuration names stay. It does so behind the settings of first.
func inert(c plumbing.Config, mine bool, first ...plumbing.Setting) []string {
	fixed := []plumbing.Setting{plumbing.Set("merge.renormalize", "false"), plumbing.Set("core.untrackedCache", "false"),
		plumbing.Set("core.safecrlf", "false"), plumbing.Set("advice.addEmbeddedRepo", "false")}
	if mine {
		c = c.Local()
	} else { // the user's says what the user's disk can keep
		fixed = append(fixed, plumbing.Set("core.fileMode", "true"))
	}
	return plumbing.Given(nil, first, c.FiltersOff(), c.MergesOff(), fixed)
}

// standing is a work tree of a history as git has it now.
type standing struct {
	Tree
	gitDir string
	head   string // the commit that is checked out
	branch string // "" = none

	env, reads []string // of a git that looks there for an agent: see alone; nil = it reads all
}

// stand finds a work tree and what is checked out there.
func (k *canopy) stand(ctx context.Context, id types.UUID, t Tree) (standing, error) {
	const op = "Worktree"
	s := standing{Tree: t}
	if info, err := os.Stat(t.Dir); err != nil || !info.IsDir() {
		return s, types.Errorf(types.ErrNotFound, op, t.Dir, "the work tree is gone; %s", k.Remains(ctx, id, t))
	}
	at, err := k.checkedOut(ctx, id, call{dir: t.Dir, user: true})
	if err != nil {
		if fault := plumbing.Fault(t.Common, t.Dir); types.CodeOf(err) == types.ErrDriver && fault != "" {
			err = types.Errorf(types.ErrConflict, op, t.Dir, "git does not take it for a work tree: %s", fault)
		}
		return s, err
	}
	if at.gitDir != plumbing.Registration(t.Common, t.Dir) {
		return s, types.Errorf(types.ErrConflict, op, t.Dir, "its .git does not lead to the repository that it was made from, but to %s: look at it by hand", at.gitDir)
	}
	if at.head == "" {
		return s, types.Errorf(types.ErrDriver, op, t.Dir, "no commit is checked out there, or what is cannot be read")
	}
	s.gitDir, s.head, s.branch = at.gitDir, at.head, at.branch
	return s, nil
}

// Standing is what there is in a work tree now.
type Standing struct {
	Head        string // the commit that is checked out
	Branch      string // "" = none
	Files       Ref    // all that is in it, but what git ignores; for Diff
	Base        Ref    // what was in it when its work began
	Uncommitted bool   // Files is not what Head has
	Commits     int    // since the base
	Merged      bool   // the branch that its work began on has all of it; not known of work that was squashed or picked
}

// Survey looks at a work tree. Nothing in it is changed, and nothing in its repository: what git writes to look is in a store of ours.
func (k *Grove) Survey(ctx context.Context, id types.UUID, t Tree) (Standing, error) {
	s, err := k.canopy.stand(ctx, id, t)
	if err != nil {
		return Standing{}, err
	}
	tree, err := k.filesOf(ctx, id, s)
	if err != nil {
		return Standing{}, err
	}
	st := Standing{Head: s.head, Branch: s.branch, Files: Ref{UUID: id, Kind: KindGit, ID: tree, Root: t.Dir}}
	trees, err := k.canopy.treesOf(ctx, id, t.Common, s.head, t.Base)
	if err != nil {
		return st, err
	}
	st.Uncommitted = trees[0] != tree
	st.Base = Ref{UUID: id, Kind: KindGit, ID: trees[1], Root: t.Dir}
	out, err := k.git.run(ctx, id, call{args: []string{"--git-dir=" + t.Common, "rev-list", "--count", s.head, "^" + t.Base, "--"}})
	if err == nil {
		_, err = fmt.Sscan(plumbing.Line(out), &st.Commits)
	}
	if err == nil && st.Commits > 0 && !st.Uncommitted {
		st.Merged, err = merged(ctx, k.git, id, t, s.head)
	}
	return st, err
}

// merged reports whether the branch that a work tree was made from has a commit. One that is not there any more has none.
func merged(ctx context.Context, k *git, id types.UUID, t Tree, commit string) (bool, error) {
	if t.BaseName == "" || t.BaseName == t.Branch {
		return false, nil
	}
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + t.Common, "rev-list", "--max-count=1", commit, "^refs/heads/" + t.BaseName, "--"}})
	if types.CodeOf(err) == types.ErrDriver {
		return false, nil
	}
	return err == nil && plumbing.Line(out) == "", err
}

// filesOf returns a tree, in the store of the repository, of the files of a work tree. It goes with a sweep that comes later.
func (k *Grove) filesOf(ctx context.Context, id types.UUID, s standing) (string, error) {
	own, err := k.stores.storeOf(ctx, id, s.Common, formatOf(s.head))
	if err != nil {
		return "", err
	}
	k.turns.sweeping.RLock()
	defer k.turns.sweeping.RUnlock()
	if err := durable.WriteFile(durable.OS, own.dropped(), nil, durable.Cached); err != nil {
		return "", err
	}
	conf, err := k.canopy.config(ctx, id, s.gitDir, true)
	if err != nil {
		return "", err
	}
	tree, index, err := k.canopy.sketch(ctx, id, s, conf, own)
	_ = os.Remove(index) // "" if there was an error
	return tree, err
}

// Unseen says for people what is in a work tree that no diff and no merge of it has: what is in submodules, initialised or not, and other
// repositories. None = there is nothing of the kind.
func (k *Grove) Unseen(ctx context.Context, id types.UUID, t Tree) ([]string, error) {
	h, err := k.git.holdings(ctx, id, t.Dir, plumbing.Registration(t.Common, t.Dir), t.Common)
	if err != nil {
		return nil, err
	}
	out := unseen(&h)
	for _, s := range h.Submodules {
		if len(s.Files) > 0 {
			out = append(out, fmt.Sprintf("in the directory of the submodule %q, which is not initialised: %s", s.Path, some(s.Files)))
		}
	}
	if len(h.Nested) > 0 {
		out = append(out, "other repositories: "+some(h.Nested))
	}
	return out, nil
}

// Empty returns the submodules of a work tree whose files are not there.
func (k *Grove) Empty(ctx context.Context, id types.UUID, t Tree) ([]string, error) {
	out, err := k.git.run(ctx, id, call{args: []string{"--git-dir=" + t.Common, "ls-tree", "-r", "-z", "--full-tree", t.Base}})
	var empty []string
	for _, e := range plumbing.Records(out) {
		if meta, path, _ := strings.Cut(e, "\t"); strings.HasPrefix(meta, plumbing.Gitlink+" ") {
			if _, err := os.Lstat(filepath.Join(t.Dir, path, ".git")); err != nil {
				empty = append(empty, path)
			}
		}
	}
	return empty, err
}

// some lists the first of some paths, and how many more there are.
func some(paths []string) string {
	out := make([]string, min(len(paths), 3))
	for i := range out {
		out[i] = strconv.Quote(paths[i])
	}
	text := strings.Join(out, ", ")
	if n := len(paths) - len(out); n > 0 {
		text += fmt.Sprintf(" and %d more", n)
	}
	return text
}

// treesOf returns the trees of commits.
func (k *canopy) treesOf(ctx context.Context, id types.UUID, common string, commits ...string) ([]string, error) {
	var in []string
	for _, c := range commits {
		in = append(in, c+"^{tree}")
	}
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + common, "cat-file", "--batch-check=%(objectname)"}, input: plumbing.Lines(in)})
	if err != nil {
		return nil, err
	}
	trees := plumbing.Answers(out, len(commits))
	if i := slices.IndexFunc(trees, func(id string) bool { return strings.Contains(id, " ") }); i >= 0 || len(trees) == 0 {
		return nil, types.Errorf(types.ErrDriver, "Git", common, "git cat-file: commits that cannot be read: %q", out)
	}
	return trees, nil
}

// unfinished returns what git is in the middle of; "" = nothing. A bisection is in the way of no commit.
func unfinished(gitDir string) string {
	for _, name := range plumbing.Halfway(gitDir) {
		if name != plumbing.Bisect {
			return name
		}
	}
	return ""
}

// CommitWork makes a commit of all that is in a work tree and that git does not ignore, on the branch
// that is checked out there. It returns the commit, and whether there was anything to commit. CONFLICT
// if an operation of git's is half-way there.
func (k *Grove) CommitWork(ctx context.Context, id types.UUID, t Tree, message string) (commit string, made bool, err error) {
	const op = "Merge"
	c := k.canopy
	s, err := c.stand(ctx, id, t)
	if err != nil {
		return "", false, err
	}
	if what := unfinished(s.gitDir); what != "" {
		return "", false, types.Errorf(types.ErrConflict, op, t.Dir, "an operation of git's is half-way there (%s): end it or abort it there first", what)
	}
	conf, err := c.config(ctx, id, s.gitDir, true)
	if err != nil {
		return "", false, err
	}
	tree, index, err := c.sketch(ctx, id, s, conf, nil)
	if err != nil {
		return "", false, err
	}
	defer os.Remove(index)
	was, err := c.treesOf(ctx, id, t.Common, s.head)
	if err != nil || was[0] == tree {
		return s.head, false, err
	}
	if files, err := c.filtered(ctx, id, s, conf, was[0], tree); err != nil {
		return "", false, err
	} else if len(files) > 0 {
		return "", false, types.Errorf(types.ErrConflict, op, t.Dir, "%w", &MergeError{Files: files,
			Why: "nothing was committed, since a filter that git would run (such as that of git lfs) is not run by this program; commit them there yourself"})
	}
	out, err := c.run(ctx, id, call{input: []byte(message), env: author(conf), args: []string{"--git-dir=" + s.gitDir, "commit-tree", tree, "-p", s.head}})
	if err != nil {
		return "", false, err
	}
	commit = plumbing.Line(out)
	over, err := k.landings.advancing(s, commit)
	if err != nil {
		return "", false, err
	}
	defer over()
	if _, err := c.run(ctx, id, call{args: []string{"--git-dir=" + s.gitDir, "update-ref", "-m", "rnix: the work of an agent", "HEAD", commit, s.head}}); err != nil {
		return "", false, types.Errorf(types.ErrConflict, op, t.Dir, "what is checked out there was changed meanwhile: try again: %w", err)
	}
	return commit, true, c.adopt(s.gitDir, index)
}

// adopt makes an index that of a work tree, as git does it: under its lock.
func (k *canopy) adopt(gitDir, index string) error {
	data, err := os.ReadFile(index)
	if err != nil {
		return storage(index, err)
	}
	return writeLocked(filepath.Join(gitDir, "index"), data)
}

// writeLocked writes an index under git's lock. One that another git has locked stays as it is.
func writeLocked(path string, data []byte) error {
	lock, err := durable.OS.OpenFile(path+".lock", os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o666)
	if errors.Is(err, fs.ErrExist) {
		return nil // somebody's git is at work: it is only that git shows as changed there what is committed
	}
	if err != nil { // such as too many open files: another git may have the lock
		return storage(path, err)
	}
	_, err = lock.Write(data)
	if err = errors.Join(err, lock.Close()); err == nil {
		err = os.Rename(path+".lock", path)
	}
	if err != nil {
		_ = os.Remove(path + ".lock")
		return storage(path, err)
	}
	return nil
}
