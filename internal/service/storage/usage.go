package storage

import (
	"context"
	"os"
	"time"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func (d *Service) du(ctx context.Context, peer *ipc.Peer, req ipc.DURequest) (resp ipc.DUResponse, err error) {
	if err := service.People(d.Finder, peer, "DU", "not look at the room that histories take up"); err != nil {
		return resp, err
	}
	only := map[types.UUID]bool{}
	for _, text := range req.Targets {
		id, err := d.stillThere(text)
		if err != nil {
			return resp, err
		}
		only[id] = true
	}
	u, err := d.usage(ctx)
	if err != nil {
		return resp, err
	}
	for _, i := range d.Kernel.List() { // what is alive is newer in the kernel
		for n := range u.Histories {
			if u.Histories[n].UUID == i.UUID {
				u.Histories[n].State = i.StateName()
			}
		}
	}
	return wireUsage(&u, only, d.DataDir), nil
}

// stillThere returns the history that text names, also one that is archived.
func (d *Service) stillThere(text string) (types.UUID, error) {
	t, err := d.Finder.Resolve(text)
	if err == nil {
		return t.UUID, nil
	}
	ids, gerr := d.departed(text)
	if gerr != nil || len(ids) != 1 {
		return types.UUID{}, err
	}
	if _, serr := os.Stat(step.ArchivePath(d.DataDir, ids[0])); serr != nil {
		return types.UUID{}, err
	}
	return ids[0], nil
}

// Status says what is out of the way, and what will be within a day.
func (d *Service) Status(ctx context.Context) ipc.StorageStatus {
	s := ipc.StorageStatus{Archived: len(d.Collector.Archived()), Deleted: len(d.Collector.Deleted()), Working: d.works.all()}
	if d.Policy.Off() {
		return s
	}
	s.Mode = string(d.Mode)
	plan, err := d.Collector.Plan(ctx, time.Now().Add(24*time.Hour))
	if err != nil {
		d.Log.Warn("gc", "err", err)
	}
	s.Leaving = len(plan.Candidates)
	return s
}
