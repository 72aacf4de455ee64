package storage

import (
	"context"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/fsck"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/types"
)

func (d *Service) fsck(ctx context.Context, peer *ipc.Peer, req ipc.FsckRequest) (resp ipc.FsckResponse, err error) {
	if err := service.People(d.Finder, peer, "Fsck", "not check the files of histories"); err != nil {
		return resp, err
	}
	o := fsck.Options{FS: durable.OS, DataDir: d.DataDir, Store: d.Journal, Live: func(id types.UUID) bool { _, alive := d.Kernel.ByUUID(id); return alive },
		RaisePID: func(min uint64) error { d.PIDs.Raise(min); return d.PIDs.Settle() }, Snapshots: d.Snapshots.Check(ctx), Hold: d.Hold}
	for _, text := range req.Targets {
		t, err := d.Finder.Resolve(text)
		if err != nil {
			return resp, err
		}
		release, err := d.Hold(t.UUID) // so that it is not archived meanwhile
		if err != nil {
			return resp, err
		}
		defer release()
		o.Only = append(o.Only, t.UUID)
	}
	work := d.works.begin(ipc.Fsck.Name)
	defer work.end()
	o.Progress = func(done, total int, id types.UUID) { work.of(total); work.next(done, id) }
	look := fsck.Check
	if req.Repair {
		look = fsck.Repair
	}
	r, err := look(ctx, o)
	if err != nil {
		return resp, err
	}
	return d.wireFsck(&r, req.Repair), nil
}

// notRepaired is how the word on a repair begins that has failed.
const notRepaired = "not repaired"

func (d *Service) wireFsck(r *fsck.Report, repaired bool) ipc.FsckResponse {
	resp := ipc.FsckResponse{Histories: r.Histories, Records: r.Records, Repaired: repaired, Findings: []ipc.FsckFinding{}}
	for i := range r.Findings {
		f := &r.Findings[i]
		w := ipc.FsckFinding{UUID: f.UUID, File: f.File, Line: f.Line, Offset: f.Offset, Severity: string(f.Severity), What: f.What, Repair: f.Repair, Done: f.Done}
		switch {
		case filepath.IsAbs(f.File):
		case f.UUID == nil || f.File == step.IndexFile:
			w.File = filepath.Join(d.DataDir, f.File)
		default:
			w.File = filepath.Join(d.Journal.Dir(*f.UUID), f.File)
		}
		if f.UUID != nil {
			if info, ok := d.Journal.Index().Get(*f.UUID); ok {
				w.PID = info.PID
			}
		}
		if f.Severity == fsck.Error && (f.Done == "" || strings.HasPrefix(f.Done, notRepaired)) {
			resp.Errors++
		}
		resp.Findings = append(resp.Findings, w)
	}
	return resp
}
