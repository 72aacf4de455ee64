package kernel

import (
	"context"
	"slices"

	"rnix/types"
)

// plant makes a git work tree for a child, if its parent wants one. The caller calls undo if the child is not started.
func (at *agentActions) plant(ctx context.Context, p *Process, wanted bool, child *SpawnOpts) (undo func(), err error) {
	if !wanted {
		return func() {}, nil
	}
	return at.workspace.Plant(ctx, p, child)
}

// planted says where the work of a child is that has a work tree of its own, and lets its parent read there; "" if it has
// none.
func (at *agentActions) planted(p *Process, id types.UUID) string {
	dir, text := at.workspace.Planted(id)
	if dir != "" {
		p.mu.Lock()
		defer p.mu.Unlock()
		if !slices.Contains(p.trees, dir) {
			p.trees = append(slices.Clip(p.trees), dir)
		}
	}
	return text
}

// readRoots are the directories that a process may read besides its own: those that it was given, and the work trees of
// its children.
func readRoots(p *Process) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append(slices.Clip(p.ReadRoots), p.trees...)
}
