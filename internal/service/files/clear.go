package files

import (
	"context"
	"path/filepath"

	"rnix/internal/workspace"
	"rnix/types"
)

// ownDir is the directory that was made for a history: its work tree, or the workspace of a fork.
func (s *Service) ownDir(id types.UUID) string {
	if t, err := s.Trees.Of(id); err == nil {
		return t.Dir
	}
	return s.Snapshots.ForkDir(id)
}

// Rescue refuses to give up the workspace of a history in which another process works or will, and says where its files
// will be: Clear keeps them, when nothing can keep the history from going any more.
func (s *Service) Rescue(id types.UUID) (how string, err error) {
	dir := s.ownDir(id)
	if !exists(dir) {
		return "", nil
	}
	if err := s.othersIn(dir, id); err != nil {
		return "", err
	}
	if list := s.Trees.git.ListRescues(dir); list != "" {
		return "its files are kept in a commit that is listed by: " + list, nil
	}
	return "its files are kept below " + filepath.Join(s.Snapshots.data, "snapshots"), nil
}

// othersIn refuses if another process works in a directory, or will when it is resumed.
func (s *Service) othersIn(dir string, id types.UUID) error {
	top := resolved(dir)
	within := func(work string) bool { return work != "" && under(resolved(work), top) }
	for _, i := range s.Kernel.List() {
		if i.UUID != id && i.State < types.StateZombie && within(i.WorkDir) {
			return types.Errorf(types.ErrConflict, "Rescue", dir, "PID %d, which is %s, works there", i.PID, i.StateName())
		}
	}
	for _, i := range s.Histories.List() {
		if i.UUID != id && i.Suspended && within(i.WorkDir) {
			return types.Errorf(types.ErrConflict, "Rescue", dir, "PID %d, which is suspended, works there", i.PID)
		}
	}
	return nil
}

// Clear removes the directory that was made for a history, after its files were kept, or what was kept of it when it was put away, and returns how they are got back; "" if
// there are none.
func (s *Service) Clear(ctx context.Context, id types.UUID) (how string, err error) {
	dir := s.ownDir(id)
	away, err := workspace.Release(ctx, s.Snapshots.keeper, id)
	if err != nil {
		return "", err
	}
	how = s.Trees.git.WayBack(away)
	var rep workspace.Report
	if exists(s.Trees.Home(id)) {
		rep, err = s.Trees.remove(ctx, id, true)
	} else if rep, err = s.Trees.git.Discard(ctx, dir); types.CodeOf(err) == types.ErrNotFound && !exists(dir) {
		return how, nil
	}
	if err != nil || rep.Rescue == nil {
		return how, err
	}
	how = s.Trees.git.WayBack(rep.Rescue)
	for _, k := range rep.Kept {
		how += "; lost: " + k
		s.Log.Warn("files were lost with the workspace of a history", "uuid", id, "dir", dir, "what", k)
	}
	s.Log.Info("the workspace of a history was removed", "uuid", id, "dir", dir, "way back", how)
	return how, nil
}
