package daemon

import (
	"context"

	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/types"
)

// goneTree returns the error for a process whose work tree is not there any more: what stays of it is its branch. It is
// nil for a process that has one, or never had any.
func goneTree(ctx context.Context, d *Daemon, op string, id types.UUID) error {
	h, err := step.ReadHistory(ctx, d.journal, id)
	if err != nil {
		return nil // it is not told by this
	}
	return branchStays(op, id, lastTree(h))
}

// lastTree returns the work tree in which a process was settled last; nil = none.
func lastTree(h *step.History) (t *workspace.Tree) {
	for i := range h.Records {
		if m := h.Records[i].Marker; m != nil && (m.Name == step.MarkerSpawn || m.Name == step.MarkerResumed) && len(m.Detail) > 0 {
			was := settledIn(m)
			t = settingsIn(&was).Tree
		}
	}
	return t
}

func branchStays(op string, id types.UUID, t *workspace.Tree) error {
	if t == nil || t.Branch == "" || exists(t.Dir) {
		return nil
	}
	return types.Errorf(types.ErrNotFound, op, id.String(), "its work tree was removed; its branch %s stays in %s, and what was not committed on it below refs/rnix/rescue/%s, which git for-each-ref lists",
		t.Branch, t.Repo, id)
}
