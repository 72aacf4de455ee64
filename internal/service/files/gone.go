package files

import (
	"context"

	"rnix/internal/moved"
	"rnix/internal/profile"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/types"
)

// gone returns the error for a process whose work tree is not there any more: the error says what stays of it. It is
// nil for a process that has one, or never had any.
func (s *Service) gone(ctx context.Context, op string, id types.UUID) error {
	trail, err := s.Histories.Trail(ctx, &service.Target{UUID: id}, id.String())
	if err != nil {
		return nil // it is not told by this
	}
	return s.Trees.remains(ctx, op, id, s.Trees.last(&trail))
}

// last returns the work tree in which a process was settled last; nil = none.
func (t *Trees) last(trail *step.Trail) *workspace.Tree {
	if trail.Settled == nil {
		return nil
	}
	was := step.Marker{Detail: moved.JSON(t.data, trail.Settled)}.Settled()
	return profile.SettingsIn(&was).Tree
}

// remains says what stays of a work tree that was removed; nil for one that is there, and for none.
func (t *Trees) remains(ctx context.Context, op string, id types.UUID, tree *workspace.Tree) error {
	if tree == nil || tree.Dir == "" || exists(tree.Dir) {
		return nil
	}
	return types.Errorf(types.ErrNotFound, op, id.String(), "its work tree was removed; %s", t.git.Remains(ctx, id, *tree))
}
