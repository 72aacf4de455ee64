package daemon

import (
	"context"

	"rnix/internal/moved"
	"rnix/internal/profile"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/types"
)

// goneTree returns the error for a process whose work tree is not there any more: the error says what stays of it. It is
// nil for a process that has one, or never had any.
func goneTree(ctx context.Context, d *Daemon, op string, id types.UUID) error {
	trail, _, err := d.histories.Trail(ctx, &target{UUID: id}, id.String())
	if err != nil {
		return nil // it is not told by this
	}
	return treeRemains(ctx, d.kept, op, id, lastTree(d, &trail))
}

// lastTree returns the work tree in which a process was settled last; nil = none.
func lastTree(d *Daemon, t *step.Trail) *workspace.Tree {
	if t.Settled == nil {
		return nil
	}
	was := step.Marker{Detail: moved.JSON(d.places.DataDir, t.Settled)}.Settled()
	return profile.SettingsIn(&was).Tree
}

// treeRemains says what stays of a work tree that was removed; nil for one that is there, and for none.
func treeRemains(ctx context.Context, k *workspace.Keeper, op string, id types.UUID, t *workspace.Tree) error {
	if t == nil || t.Dir == "" || exists(t.Dir) {
		return nil
	}
	return types.Errorf(types.ErrNotFound, op, id.String(), "its work tree was removed; %s", k.Remains(ctx, id, *t))
}
