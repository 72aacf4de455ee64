package watch

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rnix/internal/procview"
	"rnix/ipc"
	"rnix/types"
)

// list answers with the table of processes as it is now. Its Seq is read first: all up to it is in the rows.
func (w *Service) list(ctx context.Context, _ *ipc.Peer, req ipc.ListRequest) (ipc.ListResponse, error) {
	if req.Limit < 0 {
		return ipc.ListResponse{}, types.Errorf(types.ErrInvalid, "list_procs", "", "limit %d is negative", req.Limit)
	}
	if err := types.CheckSelectors(req.Labels); err != nil {
		return ipc.ListResponse{}, types.Errorf(types.ErrInvalid, "list_procs", "", "%w", err)
	}
	w.Callers.Settled(ctx)
	resp := ipc.ListResponse{Procs: []ipc.Proc{}, Seq: w.Log.Last(), At: time.Now()}
	var sum tally
	var ended ipc.Ended
	seen := map[types.UUID]bool{}
	for _, i := range w.Kernel.List() {
		p := w.Looks.Living(&i)
		sum.add(&p, 1)
		countEnded(&ended, &p)
		if p.Labels.Match(req.Labels) {
			resp.Procs = append(resp.Procs, p)
		}
		seen[i.UUID] = true
	}
	onDisk := w.Index.Open()
	if req.All {
		onDisk = w.Index.List()
	}
	var stored []ipc.Proc
	if req.All {
		resp.Ended = &ended
		for _, a := range w.Archive.Archived() {
			p := procview.InArchive(&a)
			countEnded(&ended, &p)
			if p.Labels.Match(req.Labels) {
				stored = append(stored, p)
			}
		}
	}
	for n := range onDisk {
		if seen[onDisk[n].UUID] {
			continue
		}
		p := w.Looks.Stored(&onDisk[n])
		sum.add(&p, 1)
		countEnded(&ended, &p)
		if (req.All || p.State == procview.Suspended) && p.Labels.Match(req.Labels) {
			stored = append(stored, p)
		}
	}
	if req.Limit > 0 && len(stored) > req.Limit { // the newest are last
		resp.Hidden = len(stored) - req.Limit
		stored = stored[len(stored)-req.Limit:]
	}
	resp.Procs = append(stored, resp.Procs...)
	slices.SortStableFunc(resp.Procs, func(a, b ipc.Proc) int { return cmp.Compare(a.PID, b.PID) })
	resp.Totals = sum.totals()
	return resp, nil
}
