package storage

import (
	"context"

	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// remove deletes one history for good, where it lies or in its archive.
func (d *Service) remove(ctx context.Context, peer *ipc.Peer, req ipc.RemoveRequest) (resp ipc.RemoveResponse, err error) {
	if err := service.People(d.Finder, peer, "Remove", "not delete histories"); err != nil {
		return resp, err
	}
	id, err := anywhere(d, req.Target)
	if err != nil {
		return resp, err
	}
	if req.DryRun {
		c, err := d.Collector.Removable(ctx, id)
		return ipc.RemoveResponse{HistoryRef: wireRef(&c.Ref), Archived: c.Archived}, calledAs(err, id, req.Target)
	}
	done, err := d.Collector.Remove(ctx, id, "a person removed it")
	if err != nil {
		return resp, calledAs(err, id, req.Target)
	}
	d.Sweep(context.WithoutCancel(ctx))
	return ipc.RemoveResponse{HistoryRef: wireRef(&done.Ref), Archived: done.Candidate.Archived, Bytes: done.Bytes, Rescued: done.Rescued, Warning: done.Warning}, nil
}

// anywhere returns the history that text names, whether it is here or in an archive. One that is here comes first.
func anywhere(d *Service, text string) (types.UUID, error) {
	t, err := d.Finder.Resolve(text)
	if types.CodeOf(err) != types.ErrNotFound {
		return t.UUID, err
	}
	ids, derr := d.departed(text)
	if derr != nil {
		return types.UUID{}, derr
	}
	if len(ids) == 0 {
		return types.UUID{}, err
	}
	return ids[0], nil
}
