package daemon

import (
	"context"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/gc"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/types"
)

// openStorage opens the collector, which finishes what a crash has cut in two. Nothing else may be
// writing histories yet. ctx is that of the daemon.
func openStorage(ctx context.Context, d *Daemon, cfg *config.Config) (err error) {
	if d.kept = d.keeper; d.kept == nil {
		d.kept = workspace.New(workspace.Options{Procs: d.procs, Dir: d.places.DataDir, Log: d.log})
	}
	d.grove = workspace.NewGrove(d.kept)
	policy := gc.Policy{RetentionDays: cfg.GC.RetentionDays.V, MaxEntries: cfg.GC.MaxEntries.V, Grace: gc.DefaultGrace}
	mode := gc.Mode(cfg.GC.Mode.V)
	d.retention = cfg.RetentionUnknown()
	d.collector, err = gc.Open(gc.Options{
		FS: durable.OS, DataDir: d.places.DataDir, Journal: d.journal, Index: d.journal.Index(), Workspaces: clearing{d},
		Policy: policy, Mode: mode, Interval: time.Duration(cfg.GC.IntervalSeconds.V) * time.Second,
		Report: func(r gc.Result, err error) { d.storage.Report(ctx, r, err) },
	})
	if err != nil {
		return err
	}
	s := d.storage
	s.Collector, s.Snapshots, s.Journal, s.PIDs, s.Finder = d.collector, keptSnapshots{d}, d.journal, d.pids, finder{d}
	s.DataDir, s.Held, s.Policy, s.Mode, s.Retention, s.Log = d.places.DataDir, d.journal.Claim.Check, policy, mode, d.retention, d.log
	for _, p := range d.collector.Problems() {
		d.note("%s", p)
	}
	moveIn(ctx, d)
	worktrees{d}.sweep(ctx)
	return nil
}

// keptSnapshots are the snapshots of all histories.
type keptSnapshots struct{ daemon *Daemon }

func (k keptSnapshots) Sweep(ctx context.Context) (workspace.Swept, error) {
	return k.daemon.kept.Sweep(ctx)
}

func (k keptSnapshots) Room(ctx context.Context) (workspace.Room, error) {
	return k.daemon.kept.Room(ctx)
}

// Check returns a function that says whether a snapshot is there and can be read. It asks once
// for each; nil where snapshots are switched off.
func (k keptSnapshots) Check(ctx context.Context) func(types.UUID, step.Snapshot) error {
	d := k.daemon
	if d.keeper == nil {
		return nil
	}
	known := map[string]error{}
	return func(id types.UUID, s step.Snapshot) error {
		key := s.Kind + " " + s.ID
		err, asked := known[key]
		if !asked {
			ref := refOf(d, keeping{d}.takenBy(ctx, id, &s), &s)
			_, _, err = d.keeper.Diff(ctx, ref, ref, workspace.DiffOpts{NamesOnly: true})
			known[key] = err
		}
		return err
	}
}
