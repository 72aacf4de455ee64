package daemon

import (
	"context"
	"time"

	"rnix/internal/config"
	"rnix/internal/durable"
	"rnix/internal/gc"
	"rnix/internal/service"
	"rnix/internal/step"
	"rnix/internal/workspace"
	"rnix/ipc"
	"rnix/types"
)

// storage answers what concerns the files of histories: what goes, what stays, what takes up the room.
type storage struct{ *Daemon }

func (d storage) handle(s *ipc.Server) {
	on(d.Daemon, s, ipc.GC, d.gc)
	on(d.Daemon, s, ipc.Keep, d.keep)
	on(d.Daemon, s, ipc.Unarchive, d.unarchive)
	on(d.Daemon, s, ipc.DU, d.du)
	on(d.Daemon, s, ipc.Fsck, d.fsck)
	on(d.Daemon, s, ipc.StorageProgress, func(context.Context, *ipc.Peer, ipc.Empty) (ipc.ProgressResponse, error) {
		return ipc.ProgressResponse{Works: d.works.all()}, nil
	})
}

// open opens the collector, which finishes what a crash has cut in two. Nothing else may be
// writing histories yet. ctx is that of the daemon.
func (d storage) open(ctx context.Context, cfg *config.Config) (err error) {
	if d.kept = d.keeper; d.kept == nil {
		d.kept = workspace.New(workspace.Options{Procs: d.procs, Dir: d.places.DataDir, Log: d.log})
	}
	d.grove = workspace.NewGrove(d.kept)
	d.policy = gc.Policy{RetentionDays: cfg.GC.RetentionDays.V, MaxEntries: cfg.GC.MaxEntries.V, Grace: gc.DefaultGrace}
	d.gcMode = gc.Mode(cfg.GC.Mode.V)
	d.retention = cfg.RetentionUnknown()
	d.collector, err = gc.Open(gc.Options{
		FS: durable.OS, DataDir: d.places.DataDir, Journal: d.journal, Index: d.journal.Index(), Workspaces: clearing(d),
		Policy: d.policy, Mode: d.gcMode, Interval: time.Duration(cfg.GC.IntervalSeconds.V) * time.Second,
		Report: func(r gc.Result, err error) { d.report(ctx, r, err) },
	})
	if err != nil {
		return err
	}
	for _, p := range d.collector.Problems() {
		d.note("%s", p)
	}
	moveIn(ctx, d.Daemon)
	worktrees(d).sweep(ctx)
	return nil
}

// report notes what a run in the background has done.
func (d storage) report(ctx context.Context, r gc.Result, err error) {
	if err != nil {
		d.log.Warn("gc", "err", err)
	}
	for _, w := range r.Warnings {
		d.log.Warn("gc", "what", w)
	}
	for _, s := range r.Skipped {
		d.log.Warn("gc: a history stays", "uuid", s.UUID, "pid", s.PID, "why", s.Reason)
	}
	if len(r.Archived)+len(r.Deleted) > 0 {
		swept := d.sweep(ctx)
		d.log.Info("gc", "archived", len(r.Archived), "deleted", len(r.Deleted), "freed", r.Freed+swept, "took", r.Took)
	}
}

// sweep removes the snapshots that no history has any more, and returns the bytes. What fails is tried
// again after the next run.
func (d storage) sweep(ctx context.Context) int64 {
	swept, err := d.kept.Sweep(ctx)
	if err != nil {
		d.log.Warn("sweeping snapshots", "err", err)
	}
	return swept.Bytes
}

// people refuses a caller inside an agent: what is kept of agents is not theirs to decide.
func (d storage) people(peer *ipc.Peer, op, may string) error {
	if owner, inside := d.agentOf(peer); inside {
		return service.Outside(op, owner, may)
	}
	return nil
}

func (d storage) gc(ctx context.Context, peer *ipc.Peer, req ipc.GCRequest) (resp ipc.GCResponse, err error) {
	if err := d.people(peer, "GC", "not take histories away"); err != nil {
		return resp, err
	}
	if len(d.retention) > 0 && !req.DryRun {
		return resp, types.Errorf(types.ErrInvalid, "GC", "", "cannot take histories away: %s; correct it, then restart the daemon with: rnix daemon stop", d.retention[0])
	}
	run := &clearance{undo: map[types.UUID]string{}}
	ask := gc.Request{DryRun: req.DryRun, Next: func(id types.UUID) {
		run.work.next(run.seen, id)
		run.seen++
	}}
	if req.Delete {
		ask.Mode = gc.Delete
	}
	run.work = d.works.begin(ipc.GC.Name)
	defer run.work.end()
	if !req.DryRun {
		plan, err := d.collector.Plan(ctx, time.Now())
		if err != nil {
			return resp, err
		}
		run.work.of(len(plan.Candidates))
	}
	r, err := d.collector.Collect(context.WithValue(ctx, clearanceKey{}, run), ask)
	swept := int64(0)
	if len(r.Archived)+len(r.Deleted) > 0 {
		swept = d.sweep(context.WithoutCancel(ctx))
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
			if ask.Mode != gc.Delete { // an archive leaves its workspace and its snapshots
				sizes[h.UUID] -= h.Workspace + h.Snapshots
			}
		}
	}
	resp = wireGC(&r, sizes, run.undo)
	resp.Snapshots, resp.RetentionDays, resp.MaxEntries = swept, d.policy.RetentionDays, d.policy.MaxEntries
	resp.ArchiveDir, resp.ConfirmAbove = step.ArchiveDir(d.places.DataDir), gc.ConfirmAbove
	return resp, nil
}

// usage returns the room that everything takes up. Snapshots that cannot be
// measured are a warning in it.
func (d storage) usage(ctx context.Context) (gc.Usage, error) {
	room, rerr := d.kept.Room(ctx)
	if types.CodeOf(rerr) == types.ErrCancelled {
		return gc.Usage{}, rerr
	}
	u, err := d.collector.Usage(ctx, func(id types.UUID) int64 { return room.Own[id] })
	if err == nil && rerr != nil {
		u.Warnings = append(u.Warnings, rerr.Error())
	}
	return u, err
}

func (d storage) keep(_ context.Context, peer *ipc.Peer, req ipc.KeepRequest) (resp ipc.KeepResponse, err error) {
	if err := d.people(peer, "Keep", "not decide which histories are kept"); err != nil {
		return resp, err
	}
	if req.Off && (req.Note != "" || !req.Until.IsZero()) {
		return resp, types.Errorf(types.ErrInvalid, "Keep", req.Target, "a mark that is taken away has no note and no end")
	}
	t, err := d.names.Resolve(req.Target)
	if err != nil {
		return resp, err
	}
	resp = ipc.KeepResponse{PID: t.PID, UUID: t.UUID}
	if t.Live != nil {
		resp.Name = t.Live.Name
	} else {
		resp.Name = t.Info.Name
	}
	before, err := d.collector.Kept(t.UUID)
	if resp.Was = before != nil || err != nil; req.Off { // a mark that cannot be read counts, and can be replaced
		_, err = d.collector.Unkeep(t.UUID)
		return resp, departed(d).lost(&t, req.Target, err)
	}
	if err := d.collector.Keep(t.UUID, req.Note, req.Until); err != nil {
		return resp, departed(d).lost(&t, req.Target, err)
	}
	pin, err := d.collector.Kept(t.UUID)
	if pin != nil {
		resp.Kept, resp.Note, resp.Until = true, pin.Note, pin.Until
	}
	return resp, err
}

func (d storage) unarchive(ctx context.Context, peer *ipc.Peer, req ipc.TargetRequest) (resp ipc.UnarchiveResponse, err error) {
	if err := d.people(peer, "Unarchive", "not put histories back"); err != nil {
		return resp, err
	}
	id, err := d.archivedBy(req.Target)
	if err != nil {
		return resp, err
	}
	info, err := d.collector.Unarchive(ctx, id)
	if err != nil {
		return resp, err
	}
	resp = ipc.UnarchiveResponse{HistoryRef: ipc.HistoryRef{UUID: id, PID: info.PID, Name: info.Name, Intent: step.FirstLine(info.Intent), DeadAt: info.DeadAt},
		Dir: d.journal.Dir(id)}
	if pin, err := d.collector.Kept(id); err == nil && pin != nil { // it is back all the same
		resp.KeptUntil = pin.Until
	}
	return resp, nil
}

// archivedBy returns the archived history that text names.
func (d storage) archivedBy(text string) (types.UUID, error) {
	ids, err := departed(d).by(text)
	if err != nil {
		return types.UUID{}, err
	}
	if len(ids) == 1 {
		return ids[0], nil // if it was deleted, the collector says so
	}
	t, err := d.names.Resolve(text)
	if err != nil {
		return types.UUID{}, err
	}
	return types.UUID{}, types.Errorf(types.ErrConflict, "Unarchive", text, "PID %d is not archived: its history is in %s", t.PID, d.journal.Dir(t.UUID))
}

func (d storage) du(ctx context.Context, peer *ipc.Peer, req ipc.DURequest) (resp ipc.DUResponse, err error) {
	if err := d.people(peer, "DU", "not look at the room that histories take up"); err != nil {
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
	for _, i := range d.kernel.List() { // what is alive is newer in the kernel
		for n := range u.Histories {
			if u.Histories[n].UUID == i.UUID {
				u.Histories[n].State = i.StateName()
			}
		}
	}
	return wireUsage(&u, only, d.places.DataDir), nil
}

// stillThere returns the history that text names, also one that is archived.
func (d storage) stillThere(text string) (types.UUID, error) {
	t, err := d.names.Resolve(text)
	if err == nil {
		return t.UUID, nil
	}
	if ids, gerr := (departed(d)).by(text); gerr == nil && len(ids) == 1 && exists(step.ArchivePath(d.places.DataDir, ids[0])) {
		return ids[0], nil
	}
	return types.UUID{}, err
}

// status says what is out of the way, and what will be within a day.
func (d storage) status(ctx context.Context) ipc.StorageStatus {
	s := ipc.StorageStatus{Archived: len(d.collector.Archived()), Deleted: len(d.collector.Deleted()), Working: d.works.all()}
	if d.policy.Off() {
		return s
	}
	s.Mode = string(d.gcMode)
	plan, err := d.collector.Plan(ctx, time.Now().Add(24*time.Hour))
	if err != nil {
		d.log.Warn("gc", "err", err)
	}
	s.Leaving = len(plan.Candidates)
	return s
}
