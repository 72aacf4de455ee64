package autoresume

import (
	"context"
	"slices"

	"rnix/internal/compose/run"
	"rnix/internal/launch"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/types"
)

// ending brings to its end what an earlier daemon was ending when it was killed.
type ending struct {
	stored *launch.Stored
	flows  Flows
	note   func(format string, args ...any)
}

// escaped ends a child of a supervisor that was killed, or a node of a run that was ended, if the daemon was killed before the child could be
// ended. It reports whether the history was one.
func (d *ending) escaped(ctx context.Context, info *step.ProcInfo) bool {
	up, ok := d.stored.Cards.Index().Get(info.ParentUUID)
	if !ok || !slices.Contains(d.flows.Left(ctx, &up), info.UUID) {
		return false
	}
	isNode, reason, what := up.Kind == run.Kind, "terminated: its supervisor has ended", "supervisor has ended"
	if isNode {
		reason, what = run.ReasonEnded, "run was ended"
	}
	if err := d.stored.Dismiss(ctx, info.UUID, reason); err != nil {
		d.note("PID %d (%s) cannot be ended, and its %s: %v", info.PID, info.UUID, what, err)
	} else if !isNode {
		d.note("PID %d (%s) is ended, as its supervisor was", info.PID, info.UUID)
	}
	return true
}

// endsRun brings a run to its end that was ending when the daemon was killed, with its nodes. It reports whether
// the history is one.
func (d *ending) endsRun(ctx context.Context, info *step.ProcInfo, state *recovery.State) bool {
	if info.Kind != run.Kind || state.Phase == recovery.Ended {
		return false
	}
	exit, nodes, ending := d.flows.Ending(state)
	if !ending {
		return false
	}
	for _, id := range nodes {
		if err := d.stored.Dismiss(ctx, id, run.ReasonEnded); err != nil && types.CodeOf(err) != types.ErrNotFound {
			d.note("%s, a node of PID %d (%s), which was ending, cannot be ended: %v", id, info.PID, info.UUID, err)
		}
	}
	if err := d.stored.End(ctx, info, exit); err != nil {
		d.note("PID %d (%s) was ending, and cannot be ended: %v", info.PID, info.UUID, err)
		return true
	}
	d.note("PID %d (%s) was ending when the daemon ended, and is ended with its nodes", info.PID, info.UUID)
	return true
}
