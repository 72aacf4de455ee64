package daemon

import (
	"context"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/service/files"
	"rnix/internal/workspace"
	"rnix/kernel"
	"rnix/types"
)

// planting is what the work tree of a node of a workflow is to be.
func planting(from string, w *compose.Worktree) workspace.Planting {
	return workspace.Planting{From: from, Branch: w.Branch, Base: w.Base}
}

// treeForNode makes the work tree of an attempt of a node, if it is to have one. A later attempt begins anew, in a tree of its
// own, at the commit at which the first one began: what an attempt has done that failed may be what made it fail, and is still
// there to be looked at. A branch of a name that the file gives belongs to the first attempt; the next ones add a number.
func treeForNode(ctx context.Context, trees *files.Trees, cwd string, l *run.Launch, o *kernel.SpawnOpts) (*workspace.Tree, func(), error) {
	w := l.Node.Worktree
	if w == nil || !w.Own {
		return nil, func() {}, nil
	}
	p := planting(cwd, w)
	if p.Name = files.BranchName(o.Name, o.UUID); l.Attempt > 1 && p.Branch != "" {
		p.Name, p.Branch = p.Branch, ""
	}
	if first, err := trees.Of(l.Origin); err == nil && l.Origin != o.UUID {
		p.Base = first.Base
	}
	return trees.CreateAs(ctx, p, types.UUID{}, o)
}
