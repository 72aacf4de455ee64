package daemon

import (
	"context"
	"path/filepath"

	"rnix/internal/gc"
	"rnix/internal/workspace"
	"rnix/types"
)

// clearing removes the workspaces and the snapshots of histories that go. A history has a workspace of
// its own only if it is a fork or has a git work tree. It implements gc.Workspaces.
type clearing struct{ *Daemon }

var _ gc.Workspaces = clearing{}

// Rescue refuses to give up a workspace in which somebody else works or will, and says where its files
// will be: Remove keeps them, when nothing can keep the history from going any more.
func (d clearing) Rescue(ctx context.Context, id types.UUID) (how string, err error) {
	dir := worktrees(d).ownDir(id)
	if !exists(dir) {
		return "", nil
	}
	if err := d.othersIn(dir, id); err != nil {
		return "", err
	}
	if list := d.grove.ListRescues(dir); list != "" {
		return "its files are kept in a commit that is listed by: " + list, nil
	}
	return "its files are kept below " + filepath.Join(d.places.DataDir, "snapshots"), nil
}

// othersIn refuses if another process works in a directory, or will when it is resumed.
func (d clearing) othersIn(dir string, id types.UUID) error {
	top := resolved(dir)
	within := func(work string) bool { return work != "" && under(resolved(work), top) }
	for _, i := range d.kernel.List() {
		if i.UUID != id && i.State < types.StateZombie && within(i.WorkDir) {
			return types.Errorf(types.ErrConflict, "Rescue", dir, "PID %d, which is %s, works there", i.PID, i.StateName())
		}
	}
	for _, i := range d.journal.Index().List() {
		if i.UUID != id && i.Suspended && within(i.WorkDir) {
			return types.Errorf(types.ErrConflict, "Rescue", dir, "PID %d, which is suspended, works there", i.PID)
		}
	}
	return nil
}

// ownDir is the directory that was made for a history: its work tree, or the workspace of a fork.
func (d worktrees) ownDir(id types.UUID) string {
	if t, err := d.treeOf(id); err == nil {
		return t.Dir
	}
	return d.forkDir(id)
}

// Remove removes the directory that was made for a history, after its files were kept.
func (d clearing) Remove(ctx context.Context, id types.UUID) (how string, err error) {
	dir := worktrees(d).ownDir(id)
	var rep workspace.Report
	if exists((worktrees(d)).treeHome(id)) {
		err = worktrees(d).uproot(ctx, id, true, &rep)
	} else if rep, err = d.kept.Discard(ctx, dir); types.CodeOf(err) == types.ErrNotFound && !exists(dir) {
		return "", nil
	}
	if err != nil || rep.Rescue == nil {
		return "", err
	}
	how = d.kept.WayBack(rep.Rescue)
	for _, k := range rep.Kept {
		how += "; lost: " + k
		d.log.Warn("files were lost with the workspace of a history", "uuid", id, "dir", dir, "what", k)
	}
	d.log.Info("the workspace of a history was removed", "uuid", id, "dir", dir, "way back", how)
	return how, nil
}

// DropSnapshots forgets the snapshots of a history; their bytes go with the next sweep. What a platform was to be told
// of it goes too.
func (d clearing) DropSnapshots(ctx context.Context, id types.UUID) error {
	if err := d.platforms.Forget(id); err != nil {
		return err
	}
	err := d.kept.Drop(ctx, id)
	d.kept.Forget(id)
	return err
}
