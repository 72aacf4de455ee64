package daemon

import (
	"context"

	"rnix/internal/gc"
	"rnix/internal/service/files"
	"rnix/types"
)

// clearing removes the workspaces and the snapshots of histories that go. A history has a workspace of
// its own only if it is a fork or has a git work tree. It implements gc.Workspaces.
type clearing struct{ daemon *Daemon }

var _ gc.Workspaces = clearing{}

func (c clearing) Rescue(_ context.Context, id types.UUID) (how string, err error) {
	return c.daemon.files.Rescue(id)
}

func (c clearing) Remove(ctx context.Context, id types.UUID) (how string, err error) {
	return files.TakeAway(ctx, c.daemon.files, id)
}

func (c clearing) Stow(ctx context.Context, id types.UUID) (freed int64, err error) {
	return files.Stow(ctx, c.daemon.files, id)
}

func (c clearing) Unstow(ctx context.Context, id types.UUID, dir string, lose bool) (said string, err error) {
	return files.Unstow(ctx, c.daemon.files, id, dir, lose)
}

// DropSnapshots forgets the snapshots of a history; their bytes go with the next sweep. What a platform was to be told
// of it goes too.
func (c clearing) DropSnapshots(ctx context.Context, id types.UUID) error {
	if err := c.daemon.platforms.Forget(id); err != nil {
		return err
	}
	return files.Forget(ctx, c.daemon.files, id)
}
