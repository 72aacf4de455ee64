package files

import (
	"context"
	"path/filepath"

	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/kernel"
	"rnix/types"
)

// Workspace is where the kernel's processes work.
type Workspace struct {
	Kept    *Snapshots
	Planter *Trees
	Dir     func(id types.UUID) string // of a history
}

var _ kernel.Workspace = (*Workspace)(nil)

func workerOf(p *kernel.Process) Worker {
	return Worker{PID: p.PID, UUID: p.UUID, WorkDir: p.WorkDir}
}

// Scratch implements kernel.Workspace.
func (w *Workspace) Scratch(id types.UUID) string { return filepath.Join(w.Dir(id), "scratch") }

// Inputs implements kernel.Workspace.
func (w *Workspace) Inputs(id types.UUID) string { return step.InputsDir(w.Dir(id)) }

// Keeps implements kernel.Workspace.
func (w *Workspace) Keeps() bool { return !w.Kept.Off() }

// Snapshot implements kernel.Workspace.
func (w *Workspace) Snapshot(ctx context.Context, p *kernel.Process, n int) (*step.Snapshot, bool, error) {
	return w.Kept.Take(ctx, workerOf(p), n)
}

// Undo implements kernel.Workspace.
func (w *Workspace) Undo(ctx context.Context, p *kernel.Process, call *step.Intent) error {
	return w.Kept.Undo(ctx, workerOf(p), call)
}

// Plant implements kernel.Workspace.
func (w *Workspace) Plant(ctx context.Context, parent *kernel.Process, child *kernel.SpawnOpts) (undo func(), err error) {
	return w.Planter.CreateForChild(ctx, workerOf(parent), child)
}

// Planted implements kernel.Workspace.
func (w *Workspace) Planted(child types.UUID) (dir, text string) { return w.Planter.OfChild(child) }

// Trees implements kernel.Workspace.
func (w *Workspace) Trees(parent types.UUID) []string { return w.Planter.OfChildren(parent) }

// GitState implements kernel.Workspace.
func (w *Workspace) GitState(ctx context.Context, p *kernel.Process) string {
	return w.Planter.git.StateFor(ctx, p.UUID, p.WorkDir, func() *workspace.Tree {
		n, err := w.Planter.noteOn(p.UUID)
		if err != nil {
			return nil // it has none
		}
		return &n.Tree
	})
}
