package lifecycle

import (
	"cmp"
	"context"
	"slices"

	"rnix/internal/procview"
	"rnix/ipc"
	"rnix/types"
)

// list lists what can be resumed: paused processes and those that are only on disk, the latest first.
func (d *Service) list(ctx context.Context, _ *ipc.Peer, req ipc.ListRequest) (ipc.ListResponse, error) {
	if err := d.Ground.Settled(ctx); err != nil {
		return ipc.ListResponse{}, err
	}
	if req.Limit < 0 {
		return ipc.ListResponse{}, types.Errorf(types.ErrInvalid, "list_resumable", "", "limit %d is negative", req.Limit)
	}
	resp := ipc.ListResponse{Procs: []ipc.Proc{}}
	if err := types.CheckSelectors(req.Labels); err != nil {
		return ipc.ListResponse{}, types.Errorf(types.ErrInvalid, "list_resumable", "", "%w", err)
	}
	seen := map[types.UUID]bool{}
	for _, i := range d.Kernel.List() {
		seen[i.UUID] = true
		if i.Paused || i.State >= types.StateZombie {
			p := d.Looks(&i)
			if info, ok := d.Stored.Get(i.UUID); ok {
				p.UpdatedAt = info.UpdatedAt
			}
			resp.Procs = append(resp.Procs, p)
		}
	}
	stored := d.Stored.Cards.Index().List()
	for n := range stored {
		if !seen[stored[n].UUID] {
			resp.Procs = append(resp.Procs, procview.Stored(&stored[n]))
		}
	}
	resp.Procs = slices.DeleteFunc(resp.Procs, func(p ipc.Proc) bool { return !p.Labels.Match(req.Labels) })
	slices.SortStableFunc(resp.Procs, func(a, b ipc.Proc) int { return cmp.Compare(b.PID, a.PID) })
	if n := len(resp.Procs); req.Limit > 0 && n > req.Limit {
		resp.Procs, resp.Hidden = resp.Procs[:req.Limit], n-req.Limit
	}
	return resp, nil
}
