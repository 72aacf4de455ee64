package files

import (
	"context"

	"rnix/internal/compose"
	"rnix/internal/workspace"
	"rnix/kernel"
	"rnix/types"
)

// planting is what the work tree of a node of a workflow is to be.
func planting(from string, w *compose.Worktree) workspace.Planting {
	return workspace.Planting{From: from, Branch: w.Branch, Base: w.Base}
}

// NodeTrees makes the work trees of nodes of workflows.
type NodeTrees struct{ Trees *Trees }

// FitsNode refuses a work tree that could not be made for a node of a workflow in a directory, as far as it can be told before.
func (n NodeTrees) FitsNode(ctx context.Context, cwd string, w *compose.Worktree) error {
	return n.Trees.Fits(ctx, planting(cwd, w))
}

// CreateForNode makes the work tree of an attempt of a node, if it is to have one. A later attempt begins anew, in a tree of its
// own, at the commit at which the first one, origin, began: what an attempt has done that failed may be what made it fail, and is still
// there to be looked at. A branch of a name that the file gives belongs to the first attempt; the next ones add a number. undo removes it.
func (n NodeTrees) CreateForNode(ctx context.Context, cwd string, w *compose.Worktree, attempt int, origin types.UUID, o *kernel.SpawnOpts) (undo func(), err error) {
	if w == nil || !w.Own {
		return func() {}, nil
	}
	p := planting(cwd, w)
	if p.Name = BranchName(o.Name, o.UUID); attempt > 1 && p.Branch != "" {
		p.Name, p.Branch = p.Branch, ""
	}
	if first, err := n.Trees.Of(origin); err == nil && origin != o.UUID {
		p.Base = first.Base
	}
	_, undo, err = n.Trees.CreateAs(ctx, p, types.UUID{}, o)
	return undo, err
}
