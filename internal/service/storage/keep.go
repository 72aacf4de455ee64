package storage

import (
	"context"

	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func (d *Service) keep(_ context.Context, peer *ipc.Peer, req ipc.KeepRequest) (resp ipc.KeepResponse, err error) {
	if err := service.People(d.Finder, peer, "Keep", "not decide which histories are kept"); err != nil {
		return resp, err
	}
	if req.Off && (req.Note != "" || !req.Until.IsZero()) {
		return resp, types.Errorf(types.ErrInvalid, "Keep", req.Target, "a mark that is taken away has no note and no end")
	}
	t, err := d.Finder.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	resp = ipc.KeepResponse{PID: t.PID, UUID: t.UUID}
	if t.Live != nil {
		resp.Name = t.Live.Name
	} else {
		resp.Name = t.Info.Name
	}
	before, err := d.Collector.Kept(t.UUID)
	if resp.Was = before != nil || err != nil; req.Off { // a mark that cannot be read counts, and can be replaced
		_, err = d.Collector.Unkeep(t.UUID)
		return resp, d.Lost(&t, req.Target, err)
	}
	if err := d.Collector.Keep(t.UUID, req.Note, req.Until); err != nil {
		return resp, d.Lost(&t, req.Target, err)
	}
	pin, err := d.Collector.Kept(t.UUID)
	if pin != nil {
		resp.Kept, resp.Note, resp.Until = true, pin.Note, pin.Until
	}
	return resp, err
}

func (d *Service) unarchive(ctx context.Context, peer *ipc.Peer, req ipc.UnarchiveRequest) (resp ipc.UnarchiveResponse, err error) {
	if err := service.People(d.Finder, peer, "Unarchive", "not put histories back"); err != nil {
		return resp, err
	}
	id, err := archivedBy(d, req.Target)
	if err != nil {
		return resp, err
	}
	info, err := d.Collector.Unarchive(ctx, id, req.NoFiles)
	if err != nil {
		return resp, err
	}
	resp = ipc.UnarchiveResponse{HistoryRef: ipc.HistoryRef{UUID: id, PID: info.PID, Name: info.Name, Intent: step.FirstLine(info.Intent), DeadAt: info.DeadAt},
		Dir: d.Journal.Dir(id), Said: info.Said}
	if pin, err := d.Collector.Kept(id); err == nil && pin != nil { // it is back all the same
		resp.KeptUntil = pin.Until
	}
	return resp, nil
}

// archivedBy returns the archived history that text names.
func archivedBy(d *Service, text string) (types.UUID, error) {
	ids, err := d.departed(text)
	if err != nil {
		return types.UUID{}, err
	}
	if len(ids) == 1 {
		return ids[0], nil // if it was deleted, the collector says so
	}
	t, err := d.Finder.Resolve(text)
	if err != nil {
		return types.UUID{}, err
	}
	return types.UUID{}, types.Errorf(types.ErrConflict, "Unarchive", text, "PID %d is not archived: its history is in %s", t.PID, d.Journal.Dir(t.UUID))
}
