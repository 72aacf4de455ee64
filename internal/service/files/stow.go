package files

import (
	"context"
	"path/filepath"
	"strings"

	"rnix/internal/gc"
	"rnix/internal/moved"
	"rnix/internal/workspace"
	"rnix/types"
)

// Clearing removes the directories and the snapshots of histories that go to an archive or are deleted, and puts them back. A history has a directory of
// its own only if it is a fork or has a git work tree.
type Clearing struct {
	Files *Service
	// Platforms forgets what a platform was to be told of a history.
	Platforms interface{ Forget(id types.UUID) error }
}

var _ gc.Workspaces = Clearing{}

// Rescue makes sure that no work is lost when the directory goes, and says how a person gets it back.
func (c Clearing) Rescue(_ context.Context, id types.UUID) (how string, err error) {
	return c.Files.Rescue(id)
}

// Stow keeps all that is in the directory or git work tree of an archived history, and removes it, until Unstow puts it back. An error keeps it where it
// is, and says why: not all can be kept, or another history needs it. It returns how many bytes were in it; 0 if there is none.
func (c Clearing) Stow(ctx context.Context, id types.UUID) (freed int64, err error) {
	s := c.Files
	dir := s.ownDir(id)
	if !exists(dir) {
		return 0, nil
	}
	free := func() error { return needed(s, dir, id) }
	if err := free(); err != nil {
		return 0, err
	}
	if tree, terr := s.Trees.Of(id); terr == nil {
		more, err := beside(s.Trees.Home(id), tree)
		if err == nil && more != "" {
			err = types.Errorf(types.ErrConflict, "Archive", dir, "something lies %s", more)
		}
		if err != nil {
			return 0, err
		}
	}
	freed, err = workspace.Stow(ctx, s.Snapshots.keeper, dir, free)
	if freed > 0 {
		s.Log.Info("the directory of an archived history was put away", "uuid", id, "dir", dir, "bytes", freed)
	}
	return freed, err
}

// needed refuses if another history that is not archived needs a directory: its process works there, or its work is merged into it.
func needed(s *Service, dir string, id types.UUID) error {
	if err := s.othersIn(dir, id); err != nil {
		return err
	}
	top := resolved(dir)
	for _, i := range s.Histories.List() {
		if i.UUID != id && i.WorkDir != "" && under(resolved(i.WorkDir), top) {
			return types.Errorf(types.ErrConflict, "Archive", dir, "PID %d, which is not archived, worked there too", i.PID)
		}
	}
	ids, err := s.Trees.all()
	for _, other := range ids {
		info, here := s.Histories.Get(other)
		if other == id || !here {
			continue
		}
		if t, err := s.Trees.Of(other); err == nil && under(resolved(t.Repo), top) {
			return types.Errorf(types.ErrConflict, "Archive", dir, "the work of PID %d, which is not archived, is merged into it", info.PID)
		}
	}
	return err
}

// Unstow puts back what Stow has removed that a history needs which works in dir: its own directory, that in which it worked, and that into which its
// work is merged. said is what is not as it was. With lose its own is given up, and said says how the work in it is had.
func (c Clearing) Unstow(ctx context.Context, id types.UUID, dir string, lose bool) (said string, err error) {
	s := c.Files
	k := s.Snapshots.keeper
	if lose {
		rec, err := workspace.Release(ctx, k, id)
		return s.Trees.git.WayBack(rec), err
	}
	repo := ""
	if t, err := s.Trees.Of(id); err == nil {
		repo = t.Repo
	}
	var all []string
	for owner, place := range workspace.StowedDirs(k) {
		if owner != id && !under(placeOf(s.Trees.data, dir), place) && !under(placeOf(s.Trees.data, repo), place) {
			continue
		}
		text, err := workspace.Unstow(ctx, k, owner)
		if err != nil {
			return "", err
		}
		if text != "" {
			all = append(all, text)
		}
	}
	return strings.Join(all, "; "), nil
}

// Remove removes the directory that was made for a history which is about to be deleted, and returns how the work in it is had. Until DropSnapshots is
// called it can come back. One that cannot be put away whole is cleared.
func (c Clearing) Remove(ctx context.Context, id types.UUID) (how string, err error) {
	s := c.Files
	k := s.Snapshots.keeper
	if dir := s.ownDir(id); exists(dir) {
		if _, err := workspace.Stow(ctx, k, dir, func() error { return nil }); err != nil {
			return s.Clear(ctx, id)
		}
	}
	return s.Trees.git.WayBack(workspace.StowedWork(k, id)), nil
}

// DropSnapshots removes what Remove has kept but the work, and the snapshots of a history that is deleted; their bytes go with the next sweep. What a
// platform was to be told of it goes too.
func (c Clearing) DropSnapshots(ctx context.Context, id types.UUID) error {
	s := c.Files
	if err := c.Platforms.Forget(id); err != nil {
		return err
	}
	if _, err := workspace.Release(ctx, s.Snapshots.keeper, id); err != nil {
		return err
	}
	if exists(s.Trees.Home(id)) {
		if _, err := s.Trees.remove(ctx, id, true); err != nil {
			return err
		}
	}
	return s.Snapshots.Drop(ctx, id)
}

// settle finishes or takes back what a crash has cut off of putting directories away and back. One of a history that is there comes back: it was about to
// be deleted.
func settle(ctx context.Context, s *Service) (notes []string) {
	k := s.Snapshots.keeper
	notes = workspace.SettleStowed(ctx, k)
	for id := range workspace.StowedDirs(k) {
		if _, archived := s.Archived(id); archived || !s.Histories.Begun(id) {
			continue
		}
		if _, err := workspace.Unstow(ctx, k, id); err != nil {
			notes = append(notes, "the directory of a history that was about to be deleted is not back: "+err.Error())
		}
	}
	return notes
}

// placeOf returns where a directory is now that may have been removed: in the data directory, wherever that was moved and links lead.
func placeOf(data, dir string) string {
	dir = moved.Here(data, dir)
	if rel, err := filepath.Rel(data, dir); dir != "" && err == nil && filepath.IsLocal(rel) {
		return filepath.Join(resolved(data), rel)
	}
	return resolved(dir)
}
