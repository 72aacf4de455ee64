package daemon

import (
	"context"
	"fmt"
	"os"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/internal/workspace"
	"rnix/kernel"
	"rnix/types"
)

// planter makes work trees for those whom no person starts: nodes of workflows, and children of agents.
type planter struct{ worktrees }

// planting is what the work tree of a node of a workflow is to be.
func planting(from string, w *compose.Worktree) workspace.Planting {
	return workspace.Planting{From: from, Branch: w.Branch, Base: w.Base}
}

// forNode makes the work tree of an attempt of a node, if it is to have one. A later attempt begins anew, in a tree of its
// own, at the commit at which the first one began: what an attempt has done that failed may be what made it fail, and is still
// there to be looked at. A branch of a name that the file gives belongs to the first attempt; the next ones add a number.
func (d planter) forNode(ctx context.Context, cwd string, l *run.Launch, o *kernel.SpawnOpts) (*workspace.Tree, func(), error) {
	w := l.Node.Worktree
	if w == nil || !w.Own {
		return nil, func() {}, nil
	}
	p := planting(cwd, w)
	if p.Name = branchName(o.Name, o.UUID); l.Attempt > 1 && p.Branch != "" {
		p.Name, p.Branch = p.Branch, ""
	}
	if first, err := d.treeOf(l.Origin); err == nil && l.Origin != o.UUID {
		p.Base = first.Base
	}
	return d.plantAs(ctx, p, types.UUID{}, o)
}

// forChild makes the work tree of a child whose parent wants one: of the repository in which the parent works, from what
// is checked out there.
func (d planter) forChild(ctx context.Context, parent *kernel.Process, o *kernel.SpawnOpts) (undo func(), err error) {
	_, undo, err = d.plantAs(ctx, workspace.Planting{From: parent.WorkDir, Name: branchName(o.Name, o.UUID)}, parent.UUID, o)
	return undo, err
}

// childTree returns the directory of the work tree that a parent wanted for a child, and says where it is.
func (d planter) childTree(id types.UUID) (dir, text string) {
	n, err := d.treeNoteOf(id)
	if err != nil || n.Parent == (types.UUID{}) {
		return "", ""
	}
	return n.Dir, fmt.Sprintf("Its work tree is %s, on branch %s, from %s; what is not committed there is in no branch.", n.Dir, n.Branch, n.BaseName)
}

// childTrees returns the directories of the work trees that a process wanted for its children.
func (d planter) childTrees(parent types.UUID) (dirs []string) {
	entries, err := os.ReadDir(d.treesDir())
	if err != nil {
		return nil // there are none
	}
	for _, e := range entries {
		if id, ok := historyIn(e); ok {
			if n, err := d.treeNoteOf(id); err == nil && n.Parent == parent {
				dirs = append(dirs, n.Dir)
			}
		}
	}
	return dirs
}
