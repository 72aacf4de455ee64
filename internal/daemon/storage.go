package daemon

import (
	"context"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/gc"
	"rnix/internal/service/files"
)

// openStorage opens the collector, which finishes what a crash has cut in two. Nothing else may be
// writing histories yet. ctx is that of the daemon.
func openStorage(ctx context.Context, d *Daemon, cfg *config.Config) (err error) {
	policy := gc.Policy{RetentionDays: cfg.GC.RetentionDays.V, MaxEntries: cfg.GC.MaxEntries.V, ArchiveDays: cfg.GC.ArchiveDays.V, Grace: gc.DefaultGrace}
	mode := gc.Mode(cfg.GC.Mode.V)
	d.retention = cfg.RetentionUnknown()
	d.collector, err = gc.Open(gc.Options{
		FS: durable.OS, DataDir: d.places.DataDir, Journal: d.journal, Index: d.journal.Index(), Workspaces: files.Clearing{Files: d.files, Platforms: d.platforms},
		Policy: policy, Mode: mode, Interval: time.Duration(cfg.GC.IntervalSeconds.V) * time.Second,
		Report: func(r gc.Result, err error) { d.storage.Report(ctx, r, err) },
	})
	if err != nil {
		return err
	}
	s := d.storage
	s.Collector, s.Snapshots, s.Journal, s.PIDs, s.Finder = d.collector, d.snapshots, d.journal, d.pids, d.access
	s.DataDir, s.Held, s.Policy, s.Mode, s.Retention, s.Log = d.places.DataDir, d.journal.Claim().Check, policy, mode, d.retention, d.log
	for _, p := range d.collector.Problems() {
		d.note("%s", p)
	}
	return nil
}
