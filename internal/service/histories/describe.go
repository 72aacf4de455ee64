package histories

import (
	"context"
	"os"

	"rnix/internal/service"
	"rnix/ipc"
	"rnix/types"
)

// describe describes one process, wherever it lies.
func (d *Service) describe(ctx context.Context, _ *ipc.Peer, req ipc.TargetRequest) (ipc.ProcDetail, error) {
	t, err := d.Finder.Resolve(req.Target)
	if err != nil {
		return ipc.ProcDetail{}, err
	}
	r := ipc.ProcDetail{Dir: d.Journal.Dir(t.UUID)}
	if i := t.Live; i != nil {
		r.Proc = d.Looks.Living(i)
		r.ReadRoots, r.AllowedDevices, r.DeniedDevices = i.ReadRoots, i.Rights.Allowed, i.Rights.Denied
		r.MCPMounts, r.Tools, r.Result, r.Plan = i.MCPMounts, i.Tools, i.Result, i.Plan
	} else {
		i := d.Finder.Whole(t.Info)
		r.Proc = d.Looks.Stored(i)
		r.ReadRoots, r.AllowedDevices, r.DeniedDevices = i.ReadRoots, i.AllowedDevices, i.DeniedDevices
		r.MCPMounts, r.Result = i.MCPMounts, i.Result
		if m, err := d.Journal.Blobs().Meta(t.UUID); err == nil {
			for _, tool := range m.Tools {
				r.Tools = append(r.Tools, tool.Name)
			}
		}
	}
	trail, damage, err := d.Trail(ctx, &t, req.Target)
	switch {
	case types.CodeOf(err) == types.ErrNotFound && !exists(r.Dir):
		return ipc.ProcDetail{}, err
	case err != nil:
		r.Damage = err.Error()
		return r, nil
	}
	r.Damage = damage
	if t.Live == nil || t.Live.State >= types.StateZombie {
		r.Interrupted = service.Each(trail.Interrupted(), service.WireIntent)
	}
	return r, nil
}

// exists reports whether a path is there.
func exists(path string) bool { _, err := os.Stat(path); return err == nil }
