package gc

import (
	"context"

	"rnix/internal/step"
	"rnix/types"
)

// Back is a history that was put back.
type Back struct {
	step.ProcInfo
	Said string // what of its workspace is not as it was, or how the work in it is had; "" = nothing
}

// stow puts the workspaces of archived histories away, those of earlier runs too: what kept one where it is may be over. It comes after all
// histories of a run, since a history that is not archived yet can work in the workspace of one that is.
func stow(ctx context.Context, c *Collector, r *Result) error {
	if c.o.Workspaces == nil {
		return nil
	}
	for _, a := range c.Archived() {
		if err := ended(ctx); err != nil {
			return err
		}
		freed, err := stowOne(ctx, c, a.Info.UUID)
		r.Freed += freed
		if err != nil {
			r.Stay = append(r.Stay, Skip{refOf(&a.Info), types.CodeOf(err), err.Error()})
		}
	}
	return nil
}

// stowOne puts the workspace of one history away, unless it was put back or deleted meanwhile.
func stowOne(ctx context.Context, c *Collector, id types.UUID) (int64, error) {
	release, err := c.Hold(id, owner)
	if err != nil {
		return 0, err
	}
	defer release()
	if _, archived := c.archives.Find(id); !archived || c.present(id) {
		return 0, nil
	}
	return c.o.Workspaces.Stow(ctx, id)
}

// unstow puts back what a history needs that is about to be put back.
func unstow(ctx context.Context, c *Collector, info *step.ProcInfo, id types.UUID, lose bool) (said string, err error) {
	if c.o.Workspaces == nil {
		return "", nil
	}
	return c.o.Workspaces.Unstow(ctx, id, info.WorkDir, lose)
}
