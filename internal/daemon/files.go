package daemon

import (
	"context"
	"os"

	"rnix/internal/config"
	"rnix/internal/gc"
	"rnix/internal/service"
	"rnix/internal/service/files"
	"rnix/internal/step"
	"rnix/internal/store"
	"rnix/internal/workspace"
	"rnix/types"
)

// openFiles opens what is kept of the files of processes.
func openFiles(d *Daemon, cfg config.Snapshots) {
	o := workspace.Options{Procs: d.procs, Dir: d.places.DataDir, Log: d.log}
	if cfg.Enabled.V {
		o.MaxCopyBytes, o.MaxCopyFiles = int64(cfg.MaxBytes.V), cfg.MaxFiles.V
	}
	keepFiles(d, workspace.New(o), !cfg.Enabled.V)
}

// keepFiles makes the service for the files of processes over the keeper of their snapshots. off says that none is taken.
func keepFiles(d *Daemon, k *workspace.Keeper, off bool) {
	all := onDisk{d.journal.Index(), d}
	d.snapshots, d.trees = files.NewSnapshots(k, off, d.places.DataDir, d.log), files.NewTrees(k, d.places.DataDir)
	d.snapshots.Histories = all
	d.files = &files.Service{Snapshots: d.snapshots, Trees: d.trees, Histories: all, Callers: d.access, Log: d.log, Archived: func(id types.UUID) (step.Archived, bool) { return gc.ArchiveOf(d.collector, id) }}
}

// startFiles gives the service for the files of processes what is made after them.
func startFiles(d *Daemon) {
	d.snapshots.Known, d.files.Kernel = d.seen, d.kernel
}

// onDisk are the histories on disk.
type onDisk struct {
	store.Index
	daemon *Daemon
}

func (r onDisk) Begun(id types.UUID) bool {
	_, known := r.Get(id)
	_, err := os.Stat(r.daemon.journal.Dir(id))
	_, archived := gc.ArchiveOf(r.daemon.collector, id)
	return known || archived || err == nil
}

func (r onDisk) Trail(ctx context.Context, t *service.Target, text string) (step.Trail, error) {
	trail, _, err := r.daemon.histories.Trail(ctx, t, text)
	return trail, err
}

func (r onDisk) WorkDir(t *service.Target, recorded string) string {
	return r.daemon.histories.WorkDir(t, recorded)
}

func (r onDisk) Claimed() error { return r.daemon.journal.Claim().Check() }

func (r onDisk) Reserve(id types.UUID, who string) (release func(), err error) {
	return r.daemon.storage.Reserve(id, who)
}
