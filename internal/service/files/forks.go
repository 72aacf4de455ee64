package files

import (
	"context"
	"path/filepath"
	"strings"

	"rnix/internal/moved"
	"rnix/internal/service"
	"rnix/internal/workspace"
	"rnix/types"
)

// ForksDir holds the workspaces of forks.
func (s *Snapshots) ForksDir() string { return filepath.Join(s.data, "workspaces") }

// ForkDir is where the workspace of a fork is.
func (s *Snapshots) ForkDir(id types.UUID) string { return filepath.Join(s.ForksDir(), id.String()) }

// Fork makes a directory for a fork with the files that a process had at the end of a step. It worked in the first of dirs then, and works in
// the last now. It returns the directory that stands for that in which it worked, and what could not be kept.
func (s *Snapshots) Fork(ctx context.Context, id types.UUID, of *service.Target, at int, dirs ...string) (dir, limited string, err error) {
	if s.off {
		return "", "", types.Errorf(types.ErrUnavailable, "Resume", dirs[0], "snapshots are switched off, so a fork cannot get its own files; say where it is to work with --cwd DIR")
	}
	files, err := s.at(ctx, id, of, at, dirs[len(dirs)-1])
	if err != nil {
		return "", "", err
	}
	dir = s.ForkDir(id)
	if _, err := s.keeper.Checkout(ctx, id, files.ref, dir); err != nil {
		return "", "", err
	}
	for _, from := range dirs {
		if rel, err := filepath.Rel(moved.Here(s.data, files.ref.Root), from); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return filepath.Join(dir, rel), files.limited, nil
		}
	}
	return dir, files.limited, nil
}

// at returns the files that a process had at the end of a step. If it has changed none yet, they are those in its directory, unless it begins
// to at this moment: then they are those from before its first change.
func (s *Snapshots) at(ctx context.Context, id types.UUID, of *service.Target, at int, dir string) (snapshot, error) {
	files, _, err := s.ofStep(ctx, of, at)
	if types.CodeOf(err) != types.ErrNotFound {
		return files, err
	}
	now, err := s.keeper.Take(ctx, dir, id, at)
	if err != nil {
		return snapshot{}, err
	}
	if now.ID == "" {
		return snapshot{}, types.Errorf(types.ErrUnavailable, "Resume", dir, "the files cannot be kept (%s), so a fork cannot get its own files; say where it is to work with --cwd DIR", now.Limited)
	}
	files, acts, err := s.ofStep(ctx, of, at)
	if types.CodeOf(err) != types.ErrNotFound {
		if derr := s.Drop(ctx, id); derr != nil { // what was taken now would count as the files that the fork begins with
			return snapshot{}, derr
		}
		return files, err
	}
	if acts > 0 {
		now.Limited = strings.Trim("no snapshots were taken when it ran, so they are as they are now; "+now.Limited, "; ")
	}
	return snapshot{workspace.Ref{UUID: id, Step: at, Kind: now.Kind, ID: now.ID, Root: now.Root}, now.Limited}, nil
}

// ofStep returns the snapshot that a process has of its files at the end of a step, and the last step in which it has called what may change
// files. It is NOT_FOUND if none was taken yet: one is before a process changes anything.
func (s *Snapshots) ofStep(ctx context.Context, of *service.Target, at int) (files snapshot, acts int, err error) {
	trail, err := s.Histories.Trail(ctx, of, of.UUID.String())
	if err != nil {
		return snapshot{}, 0, err
	}
	t, _, err := s.timeline(ctx, &past{*of, &trail}, "Resume", of.UUID.String(), at)
	if err != nil {
		return snapshot{}, trail.Acts, err
	}
	return t.at(at), trail.Acts, nil
}
