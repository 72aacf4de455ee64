package daemon

import (
	"context"
	"path/filepath"
	"strings"

	"rnix/internal/service/histories"
	"rnix/internal/workspace"
	"rnix/types"
)

// forkFiles gives forks files of their own: those that `rnix diff` and `rnix restore` have for the same step.
type forkFiles struct{ *Daemon }

// made makes a directory for a fork with the files that a process had at the end of a step. It worked in the first of dirs then, and works in
// the last now. It returns the directory that stands for that in which it worked, and what could not be kept.
func (d forkFiles) made(ctx context.Context, id types.UUID, of *target, at int, dirs ...string) (dir, limited string, err error) {
	if d.keeper == nil {
		return "", "", types.Errorf(types.ErrUnavailable, "Resume", dirs[0], "snapshots are switched off, so a fork cannot get files of its own; say where it is to work with --cwd DIR")
	}
	files, err := d.at(ctx, id, of, at, dirs[len(dirs)-1])
	if err != nil {
		return "", "", err
	}
	dir = d.forkDir(id)
	if _, err := d.keeper.Checkout(ctx, files.ref, dir); err != nil {
		return "", "", err
	}
	for _, from := range dirs {
		if rel, err := filepath.Rel(here(d.Daemon, files.ref.Root), from); err == nil && rel != ".." && !strings.HasPrefix(rel, "../") {
			return filepath.Join(dir, rel), files.limited, nil
		}
	}
	return dir, files.limited, nil
}

// at returns the files that a process had at the end of a step. If it has changed none yet, they are those in its directory, unless it begins
// to at this moment: then they are those from before its first change.
func (d forkFiles) at(ctx context.Context, id types.UUID, of *target, at int, dir string) (kept, error) {
	files, _, err := d.kept(ctx, of, at)
	if types.CodeOf(err) != types.ErrNotFound {
		return files, err
	}
	now, err := d.keeper.Take(ctx, dir, id, at)
	if err != nil {
		return kept{}, err
	}
	if now.ID == "" {
		return kept{}, types.Errorf(types.ErrUnavailable, "Resume", dir, "the files cannot be kept (%s), so a fork cannot get files of its own; say where it is to work with --cwd DIR", now.Limited)
	}
	files, acts, err := d.kept(ctx, of, at)
	if types.CodeOf(err) != types.ErrNotFound {
		return files, err
	}
	if acts > 0 {
		now.Limited = strings.Trim("no snapshots were taken when it ran, so they are as they are now; "+now.Limited, "; ")
	}
	return kept{workspace.Ref{UUID: id, Step: at, Kind: now.Kind, ID: now.ID, Root: now.Root}, now.Limited}, nil
}

// kept returns the snapshot that a process has of its files at the end of a step, and the last step in which it has called what may change files. It is NOT_FOUND if none was taken yet: one is before a process
// changes anything.
func (d forkFiles) kept(ctx context.Context, of *target, at int) (files kept, acts int, err error) {
	trail, _, err := d.histories.Trail(ctx, of, of.UUID.String())
	if err != nil {
		return kept{}, 0, err
	}
	t, _, err := inspector(d).timeline(ctx, &histories.Past{Target: *of, Trail: &trail}, "Resume", of.UUID.String(), at)
	if err != nil {
		return kept{}, trail.Acts, err
	}
	return t.at(at), trail.Acts, nil
}
