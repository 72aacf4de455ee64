package workspace

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/runtime/worktree"
	"rnix/types"
)

// deskVersion is the format of the notes on workspaces that this program writes.
const deskVersion = 1

// desk is the note on a workspace that Checkout has made: Remove removes nothing else. Part of the
// on-disk format.
type desk struct {
	Version int        `json:"v"`
	Dir     string     `json:"dir"`
	Owner   types.UUID `json:"owner,omitzero"`   // the history that works in it; zero = that of Ref
	Ref     Ref        `json:"ref"`              // what it was made from
	Common  string     `json:"common,omitempty"` // the repository of a linked work tree; "" = a plain directory
	Branch  string     `json:"branch,omitempty"` // that was made for it under a name that nobody has chosen: it goes with it if it holds nothing
	Time    time.Time  `json:"time"`
}

// owner is the history that works in a workspace: what is rescued of it is that one's.
func (d *desk) owner() types.UUID {
	var named types.UUID
	switch {
	case d.Owner != types.UUID{}:
		return d.Owner
	case named.UnmarshalText([]byte(filepath.Base(d.Dir))) == nil: // a fork's, noted by an earlier version
		return named
	}
	return d.Ref.UUID
}

// desks knows the workspaces that were made from snapshots.
type desks struct {
	*survey
	*archive
	mostBytes int64
	mostFiles int

	dropping sync.Mutex // held over git while it is decided whether a branch goes; inside of the gate of its repository
}

func (k *desks) deskPath(dir string) string {
	return filepath.Join(k.base, "workspaces", strings.TrimPrefix(copyName(types.UUID{}, dir), types.UUID{}.String()+"-")+".json")
}

// Checkout makes a workspace for a history, id, from a snapshot, which may be of another one: for git a linked work tree at the commit over
// which the snapshot was made, with the files of the snapshot in it, so that git status and git diff
// say there what the work was; else a plain directory. dir must be absolute and empty, or not be there.
// What has failed half-way is removed again.
func (k *Keeper) Checkout(ctx context.Context, id types.UUID, ref Ref, dir string) (Report, error) {
	src, err := k.open(ctx, ref)
	if err != nil {
		return Report{}, err
	}
	if !filepath.IsAbs(dir) {
		return Report{}, types.Errorf(types.ErrInvalid, "Checkout", dir, "the directory is not absolute")
	}
	if names, err := os.ReadDir(dir); err == nil && len(names) > 0 {
		return Report{}, types.Errorf(types.ErrConflict, "Checkout", dir, "the directory is not empty: name a new one")
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return Report{}, fileError("Checkout", dir, err)
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return Report{}, fileError("Checkout", dir, err)
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return Report{}, fileError("Checkout", dir, err)
	}
	d := desk{Version: deskVersion, Dir: dir, Owner: id, Ref: ref, Time: time.Now().UTC()}
	g, isGit := src.(gitSource)
	if isGit {
		d.Common = g.store.common
	}
	b, err := json.Marshal(d)
	if err != nil {
		return Report{}, types.Errorf(types.ErrInternal, "Checkout", dir, "%w", err)
	}
	if err := mkdir(filepath.Dir(k.desks.deskPath(dir))); err != nil {
		return Report{}, err
	}
	if err := durable.WriteFile(durable.OS, k.desks.deskPath(dir), append(b, '\n'), durable.Durable); err != nil {
		return Report{}, err
	}
	if isGit {
		if err := k.desks.link(ctx, g, ref, dir); err != nil {
			return Report{}, errors.Join(err, os.Remove(k.desks.deskPath(dir)))
		}
	}
	want, err := src.entries(ctx)
	if err != nil {
		return Report{}, err
	}
	rep, err := apply(ctx, src, ref.Kind, dir, job{write: want, fresh: true})
	if err == nil && isGit {
		c := &canopy{k.survey}
		err = c.freshFiles(ctx, id, dir, plumbing.Registration(d.Common, dir), true)
	}
	return rep, err
}

// link makes a linked work tree without files, whose index is that of its commit.
func (k *desks) link(ctx context.Context, g gitSource, ref Ref, dir string) error {
	s, ok := k.find(ref)
	if !ok || s.Version > 1 && s.Pin == "" {
		return types.Errorf(types.ErrNotFound, "Checkout", ref.ID, "no record says over which commit the snapshot was made: restore it into a plain directory")
	}
	base, err := k.baseOf(ctx, g, s)
	if err != nil {
		return err
	}
	if err := k.worktrees(ctx, g.id, g.store.common, "add", "--detach", "--no-checkout", "--", dir, base); err != nil {
		return err
	}
	gitDir, err := k.run(ctx, g.id, call{dir: dir, user: true, args: []string{"rev-parse", "--absolute-git-dir"}})
	if err == nil {
		_, err = k.run(ctx, g.id, call{env: inert(nil, false), args: []string{"--git-dir=" + plumbing.Line(gitDir), "read-tree", base}}) // no file is there that a filter could get
	}
	if err != nil {
		return errors.Join(err, k.worktrees(ctx, g.id, g.store.common, "remove", "--force", "--", dir)) // it is empty
	}
	return k.sparse(ctx, g, s, dir, plumbing.Line(gitDir), base)
}

// worktrees runs git worktree in a repository, while nobody else here adds or removes a work tree of it: git fails where it finds one half made.
func (k *desks) worktrees(ctx context.Context, id types.UUID, common string, args ...string) error {
	leave, err := worktree.Enter(ctx, common, true)
	if err != nil {
		return err
	}
	defer leave()
	_, err = k.run(ctx, id, call{args: append([]string{"--git-dir=" + common, "worktree"}, args...)})
	return err
}

// baseOf returns the commit of the user's repository over which a snapshot was made. If that is gone, or there was none, it is what is checked
// out there now, and in a repository without a commit one that is made of the snapshot itself.
func (k *desks) baseOf(ctx context.Context, g gitSource, s Stored) (string, error) {
	there := func(rev string) (string, error) {
		out, err := k.run(ctx, g.id, call{args: []string{"--git-dir=" + g.store.common, "rev-parse", "-q", "--verify", rev + "^{commit}"}})
		if types.CodeOf(err) == types.ErrDriver {
			return "", nil
		}
		return plumbing.Line(out), err
	}
	base := s.Base
	if base == "" && s.Commit != "" { // format 1: the commit over it, which may name one that is gone
		if out, err := k.run(ctx, g.id, call{args: g.args("rev-parse", "-q", "--verify", s.Commit+"^1")}); err == nil {
			base = plumbing.Line(out)
		} else if types.CodeOf(err) != types.ErrDriver {
			return "", err
		}
	}
	for _, rev := range []string{base, "HEAD"} {
		if rev != "" {
			if found, err := there(rev); found != "" || err != nil {
				return found, err
			}
		}
	}
	ids, err := k.below(ctx, g.id, g.store, g.store.common, []string{g.tree}, nil)
	if err != nil {
		return "", err
	}
	env := []string{"GIT_ALTERNATE_OBJECT_DIRECTORIES=" + quoteConfig(g.store.objects())}
	if err := k.pack(ctx, g.id, []string{"--git-dir=" + g.store.common}, env, filepath.Join(g.store.common, "objects"), ids); err != nil {
		return "", err
	}
	out, err := k.run(ctx, g.id, call{args: []string{"--git-dir=" + g.store.common, "commit-tree", "-m", "rnix step", g.tree}})
	return plumbing.Line(out), err
}

// sparse tells a linked work tree which files are not there on purpose: those of its commit that the
// snapshot lacks, if the work tree that it was made from is sparse.
func (k *desks) sparse(ctx context.Context, g gitSource, s Stored, dir, gitDir, base string) error {
	r := &repo{root: dir, gitDir: gitDir}
	p, err := k.locate(ctx, g.id, s.Root)
	if err != nil || p.repo == nil {
		return nil // it is gone
	}
	conf, err := k.config(ctx, g.id, p.repo.gitDir, true)
	if err != nil || !conf.Says("core.sparsecheckout", "true") {
		return nil
	}
	out, err := k.run(ctx, g.id, call{args: g.args("diff-tree", "-r", "-z", "--no-renames", "--name-only", "--diff-filter=D", base, g.tree)})
	if err != nil || len(out) == 0 {
		return err
	}
	_, err = k.run(ctx, g.id, call{dir: dir, env: inert(conf, false), args: []string{"--git-dir=" + r.gitDir, "--work-tree=" + dir, "update-index", "-z", "--skip-worktree", "--stdin"}, input: out})
	return err
}
