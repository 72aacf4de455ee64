package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/runtime/worktree"
	"rnix/types"
)

// Unstow puts the workspace of a history back that Stow has put away, as it was: its files, and as a git work tree with what was staged, on its branch.
// It says for people what is not as it was; "" = nothing, or none was put away. An error leaves everything as it is, and says how the files
// can be had: NOT_FOUND for a repository that is gone, CONFLICT if another directory has its place, or its branch was moved or is checked
// out elsewhere.
func Unstow(ctx context.Context, k *Keeper, id types.UUID) (said string, err error) {
	err = withStower(ctx, k, id, func(s stower) error {
		if err := s.settle(ctx); err != nil {
			return err
		}
		n, err := s.read()
		if err != nil || n == nil {
			return err
		}
		said, err = s.come(ctx, n)
		return err
	})
	return said, err
}

// come makes the workspace of a note again.
func (s stower) come(ctx context.Context, n *stowed) (said string, err error) {
	rec, err := s.rescued(n.Files)
	if err != nil {
		return "", err
	}
	cannot := func(code types.ErrCode, format string, args ...any) error {
		return types.Errorf(code, "Unarchive", n.Desk.Dir, "its directory cannot be put back: %s; its files can be had with: %s", fmt.Sprintf(format, args...), s.k.git.WayBack(rec))
	}
	if names, err := os.ReadDir(n.Desk.Dir); err == nil && len(names) > 0 || err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", cannot(types.ErrConflict, "something else is in its place: move that away")
	}
	lacks := ""
	if n.Desk.Common != "" {
		if lacks, err = s.fits(ctx, n, cannot); err != nil {
			return "", err
		}
	}
	if err := os.MkdirAll(n.Desk.Dir, 0o777); err != nil {
		return "", fileError("Unarchive", n.Desk.Dir, err)
	}
	n.State = stowComing
	if n.Device, n.Inode = placeOf(n.Desk.Dir); n.Inode == 0 {
		return "", cannot(types.ErrConflict, "something else is in its place: move that away")
	}
	if err := s.write(n); err != nil {
		return "", err
	}
	if err = s.fillIn(ctx, n, rec); err == nil {
		err = n.settled() // before what it was made of goes
	}
	if err != nil {
		sure, cancel := surely(ctx)
		defer cancel()
		return "", errors.Join(cannot(types.CodeOf(err), "%v", err), s.undo(sure, n))
	}
	return join(lacks, n.lacks), s.forget(ctx)
}

// settled makes durable what was put back.
func (n *stowed) settled() error {
	if n.Desk.Common != "" {
		if err := syncAll(n.Desk.Common); err != nil {
			return err
		}
	}
	return syncAll(n.Desk.Dir)
}

// rescued returns a rescue by its name.
func (s stower) rescued(name string) (*Stored, error) {
	rec, err := readRecord(filepath.Join(s.k.recordDir(s.id), name+".json"))
	rec.name = name
	return &rec, err
}

// fits looks whether the repository can have a work tree again, and makes its branch anew if that is gone. It says so.
func (s stower) fits(ctx context.Context, n *stowed, cannot func(types.ErrCode, string, ...any) error) (said string, err error) {
	common := n.Desk.Common
	if _, err := os.Stat(filepath.Join(common, "objects")); err != nil {
		return "", cannot(types.ErrNotFound, "its repository %s is gone: move that back", common)
	}
	if err := s.giveBack(ctx, n); err != nil {
		return "", cannot(types.CodeOf(err), "%v", err)
	}
	if _, err := s.k.run(ctx, s.id, call{args: []string{"--git-dir=" + common, "cat-file", "-e", n.Head + "^{commit}"}}); err != nil {
		return "", cannot(types.ErrNotFound, "the commit %s, which was checked out there, is not in %s any more", n.Head, common)
	}
	if n.Branch == "" {
		return "", nil
	}
	leave, err := worktree.Enter(ctx, common, false)
	if err != nil {
		return "", err
	}
	tip, where, err := n.branchAt(ctx, s.k.git, s.id)
	leave()
	switch {
	case err != nil:
		return "", err
	case where != "":
		return "", cannot(types.ErrConflict, "its branch %s is checked out in %s: check out another one there", n.Branch, where)
	case tip == n.Head:
		return "", nil
	case tip != "":
		return "", cannot(types.ErrConflict, "its branch %s was moved from %s to %s: give the branch of now another name with: git --git-dir=%s branch -m %s NAME",
			n.Branch, n.Head, tip, plumbing.ShellQuote(common), plumbing.ShellQuote(n.Branch))
	}
	ref := "refs/heads/" + n.Branch
	if _, err := s.k.run(ctx, s.id, call{args: []string{"--git-dir=" + common, "update-ref", ref, n.Head, strings.Repeat("0", len(n.Head))}}); err != nil {
		return "", cannot(types.ErrConflict, "its branch %s is gone, and cannot be made again: %v", n.Branch, err)
	}
	return fmt.Sprintf("its branch %s was gone, and was made again at %s", n.Branch, n.Head), nil
}

// giveBack copies into the repository what that has lost since of the commits of a work tree.
func (s stower) giveBack(ctx context.Context, n *stowed) error {
	common := n.Desk.Common
	st, ids, err := s.objects(ctx, n, common)
	if err != nil || len(ids) == 0 {
		return err
	}
	out, err := s.k.run(ctx, s.id, call{args: []string{"--git-dir=" + common, "cat-file", "--batch-check=%(objectname)"}, input: plumbing.Lines(ids)})
	if err != nil {
		return err
	}
	var missing []string
	for l := range strings.Lines(string(out)) {
		if name, ok := strings.CutSuffix(strings.TrimSuffix(l, "\n"), " missing"); ok {
			missing = append(missing, name)
		}
	}
	if len(missing) == 0 {
		return nil
	}
	env := []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteConfig(st.objects())}
	return s.k.git.pack(ctx, s.id, []string{"--git-dir=" + common}, env, filepath.Join(common, "objects"), missing)
}

// fillIn makes a workspace in an empty directory.
func (s stower) fillIn(ctx context.Context, n *stowed, rec *Stored) error {
	d := n.Desk
	src, err := s.k.open(ctx, rec.Ref)
	if err != nil {
		return err
	}
	want, err := src.entries(ctx)
	if err != nil {
		return err
	}
	if err := s.k.desks.note(d); err != nil {
		return err
	}
	if d.Common != "" {
		if err := s.relink(ctx, n); err != nil {
			return err
		}
	}
	rep, err := apply(ctx, src, rec.Kind, d.Dir, job{write: want, fresh: true})
	if err != nil {
		return err
	}
	if len(rep.Kept) > 0 {
		return types.Errorf(types.ErrStorage, "Unarchive", d.Dir, "files cannot be written: %s", some(rep.Kept))
	}
	if err := n.reshape(); err != nil || d.Common == "" {
		return err
	}
	c := &canopy{s.k.survey}
	return c.freshFiles(ctx, s.id, d.Dir, plumbing.Registration(d.Common, d.Dir), true)
}

// branchAt returns the commit of the branch of a workspace, and in which work tree it is checked out; "" if it is not there, or in none. The caller is
// inside of the gate.
func (n *stowed) branchAt(ctx context.Context, k *git, id types.UUID) (tip, where string, err error) {
	if n.Branch == "" {
		return "", "", nil
	}
	ref := "refs/heads/" + n.Branch
	out, err := k.run(ctx, id, call{args: []string{"--git-dir=" + n.Desk.Common, "for-each-ref", "--format=%(refname)%00%(objectname)%00%(worktreepath)", plumbing.EscapeGlob(ref)}})
	for l := range strings.Lines(string(out)) {
		if f := strings.Split(strings.TrimSuffix(l, "\n"), "\x00"); err == nil && len(f) == 3 && f[0] == ref {
			return f[1], f[2], nil
		}
	}
	return "", "", err
}

// relink lets the repository know the work tree again, as it knew it.
func (s stower) relink(ctx context.Context, n *stowed) error {
	d := n.Desk
	leave, err := worktree.Enter(ctx, d.Common, true)
	if err != nil {
		return err
	}
	defer leave()
	switch tip, where, err := n.branchAt(ctx, s.k.git, s.id); { // since it was looked at first
	case err != nil:
		return err
	case where != "":
		return types.Errorf(types.ErrConflict, "Unarchive", n.Branch, "the branch is checked out in %s: check out another one there", where)
	case n.Branch != "" && tip != n.Head:
		return types.Errorf(types.ErrConflict, "Unarchive", n.Branch, "the branch was moved from %s meanwhile: try again", n.Head)
	}
	if _, err := s.k.run(ctx, s.id, call{args: []string{"--git-dir=" + d.Common, "worktree", "add", "--detach", "--no-checkout", "--", d.Dir, n.Head}}); err != nil {
		return err
	}
	at := plumbing.Registration(d.Common, d.Dir)
	if at == "" {
		return types.Errorf(types.ErrDriver, "Unarchive", d.Dir, "the repository %s does not know the work tree that was made", d.Common)
	}
	names, err := os.ReadDir(at)
	if err != nil {
		return fileError("Unarchive", at, err)
	}
	for _, e := range names {
		if slices.Contains(ofPlace, e.Name()) {
			continue
		}
		if err := os.RemoveAll(filepath.Join(at, e.Name())); err != nil {
			return fileError("Unarchive", at, err)
		}
	}
	return filepath.WalkDir(s.gitFiles, func(path string, e fs.DirEntry, err error) error {
		if err != nil {
			return storage(path, err)
		}
		rel, _ := filepath.Rel(s.gitFiles, path) // below it
		to := filepath.Join(at, rel)
		if e.IsDir() {
			if err := os.MkdirAll(to, 0o777); err != nil {
				return fileError("Unarchive", to, err)
			}
			return nil
		}
		b, err := os.ReadFile(path)
		if err == nil {
			err = os.WriteFile(to, b, 0o666)
		}
		if err != nil {
			return fileError("Unarchive", to, err)
		}
		return nil
	})
}

// reshape gives a workspace what a rescue of a git work tree does not say.
func (n *stowed) reshape() error {
	for _, rel := range n.Empty {
		if err := os.MkdirAll(filepath.Join(n.Desk.Dir, rel), 0o777); err != nil {
			return fileError("Unarchive", rel, err)
		}
	}
	if err := n.giveOwners(); err != nil { // before permissions, some of which a new owner takes away
		return err
	}
	var paths []string
	for rel := range n.Modes {
		paths = append(paths, rel)
	}
	slices.Sort(paths)
	for _, rel := range slices.Backward(paths) { // directories after what is in them
		if err := os.Chmod(filepath.Join(n.Desk.Dir, rel), n.Modes[rel]); err != nil {
			return fileError("Unarchive", rel, err)
		}
	}
	return n.giveAttributes()
}

// undo removes a workspace that was not finished: nobody has worked there yet.
func (s stower) undo(ctx context.Context, n *stowed) error {
	dir := n.Desk.Dir
	if err := ctx.Err(); err != nil {
		return types.Errorf(types.ErrCancelled, "Unarchive", dir, "%w", context.Cause(ctx))
	}
	if err := n.unregister(ctx); err != nil {
		return err
	}
	if n.there() {
		openDirs(dir)
		if err := os.RemoveAll(dir); err != nil {
			return fileError("Unarchive", dir, err)
		}
	}
	if err := os.Remove(s.k.desks.deskPath(dir)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return storage(dir, err)
	}
	n.State, n.Device, n.Inode = stowAway, 0, 0
	return s.write(n)
}

// Release gives up the workspace of a history that was put away: the work in it becomes a rescue like any other, and a branch that was made for it and
// holds nothing goes. It returns that rescue; nil if none was put away.
func Release(ctx context.Context, k *Keeper, id types.UUID) (rec *Stored, err error) {
	err = withStower(ctx, k, id, func(s stower) error {
		if err := s.settle(ctx); err != nil {
			return err
		}
		n, err := s.read()
		if err != nil || n == nil {
			return err
		}
		if rec, err = s.rescued(n.Work); err != nil {
			return err
		}
		n.State = stowReleased
		if err := s.write(n); err != nil {
			return err
		}
		return s.finishRelease(ctx, n)
	})
	return rec, err
}

func (s stower) finishRelease(ctx context.Context, n *stowed) error {
	rec, err := s.rescued(n.Work)
	if err != nil && types.CodeOf(err) != types.ErrNotFound {
		return err
	}
	if rec.Away && err == nil {
		rec.Away = false
		if err := s.k.record(s.id, n.Work, rec); err != nil {
			return err
		}
	}
	if n.Desk.Branch != "" {
		if _, err := s.k.desks.dropBranch(ctx, n.Desk); err != nil {
			return err
		}
	}
	return s.forget(ctx)
}
