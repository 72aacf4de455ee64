package storage

import (
	"context"
	"time"

	"rnix/internal/gc"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func (d *Service) gc(ctx context.Context, peer *ipc.Peer, req ipc.GCRequest) (resp ipc.GCResponse, err error) {
	if err := service.People(d.Finder, peer, "GC", "not take histories away"); err != nil {
		return resp, err
	}
	if len(d.Retention) > 0 && !req.DryRun {
		return resp, types.Errorf(types.ErrInvalid, "GC", "", "cannot take histories away: %s; correct it, then restart the daemon with: rnix daemon stop", d.Retention[0])
	}
	work, seen := d.works.begin(ipc.GC.Name), 0
	defer work.end()
	ask := gc.Request{DryRun: req.DryRun, Next: func(id types.UUID) {
		work.next(seen, id)
		seen++
	}}
	if req.Delete {
		ask.Mode = gc.Delete
	}
	if !req.DryRun {
		plan, err := d.Collector.Plan(ctx, time.Now())
		if err != nil {
			return resp, err
		}
		work.of(len(plan.Candidates))
	}
	r, err := d.Collector.Collect(ctx, ask)
	swept := int64(0)
	if len(r.Archived)+len(r.Deleted) > 0 {
		swept = d.Sweep(context.WithoutCancel(ctx))
	}
	if err != nil {
		return resp, err
	}
	sizes := map[types.UUID]int64{}
	if req.DryRun && len(r.Candidates) > 0 {
		u, err := d.usage(ctx)
		if err != nil {
			return resp, err
		}
		for i := range u.Histories {
			h := &u.Histories[i]
			sizes[h.UUID] = h.Total
			if ask.Mode != gc.Delete { // an archive leaves its snapshots
				sizes[h.UUID] -= h.Snapshots
			}
		}
	}
	resp = wireGC(&r, sizes)
	resp.Snapshots, resp.RetentionDays, resp.MaxEntries, resp.ArchiveDays = swept, d.Policy.RetentionDays, d.Policy.MaxEntries, d.Policy.ArchiveDays
	resp.ArchiveDir, resp.ConfirmAbove = step.ArchiveDir(d.DataDir), gc.ConfirmAbove
	return resp, nil
}

// usage returns the room that everything takes up. Snapshots that cannot be
// measured are a warning in it.
func (d *Service) usage(ctx context.Context) (gc.Usage, error) {
	room, rerr := d.Snapshots.Room(ctx)
	if types.CodeOf(rerr) == types.ErrCancelled {
		return gc.Usage{}, rerr
	}
	u, err := d.Collector.Usage(ctx, func(id types.UUID) int64 { return room.Own[id] })
	if err == nil && rerr != nil {
		u.Warnings = append(u.Warnings, rerr.Error())
	}
	return u, err
}

// Sweep removes the snapshots that no history has any more, and returns the bytes. What fails is tried
// again after the next run.
func (d *Service) Sweep(ctx context.Context) int64 {
	swept, err := d.Snapshots.Sweep(ctx)
	if err != nil {
		d.Log.Warn("sweeping snapshots", "err", err)
	}
	return swept.Bytes
}

// Report notes what a run in the background has done.
func (d *Service) Report(ctx context.Context, r gc.Result, err error) {
	if err != nil {
		d.Log.Warn("gc", "err", err)
	}
	for _, w := range r.Warnings {
		d.Log.Warn("gc", "what", w)
	}
	for _, s := range r.Skipped {
		d.Log.Warn("gc: a history stays", "uuid", s.UUID, "pid", s.PID, "why", s.Reason)
	}
	for _, s := range r.Stay {
		d.Log.Info("gc: the directory of an archived history stays", "uuid", s.UUID, "pid", s.PID, "why", s.Reason)
	}
	if len(r.Archived)+len(r.Deleted) > 0 {
		swept := d.Sweep(ctx)
		d.Log.Info("gc", "archived", len(r.Archived), "deleted", len(r.Deleted), "freed", r.Freed+swept, "took", r.Took)
	}
}
