package gc

import (
	"cmp"
	"context"
	"time"

	"rnix/internal/durable"
	"rnix/internal/step"
	"rnix/types"
)

// Request is what a run is asked for. The zero value does what the configuration says.
type Request struct {
	Mode   Mode // "" = that of Options
	DryRun bool // decide, and do nothing
	// Next is told of each history before it is taken; nil = nobody is.
	Next func(types.UUID)
}

// Done is a history that went.
type Done struct {
	Candidate
	Bytes       int64  `json:"bytes"`             // of its directory
	ArchiveSize int64  `json:"archive_bytes"`     // 0 if it was deleted
	Archive     string `json:"archive,omitempty"` // the path
	Rescued     string `json:"rescued,omitempty"` // how the work in its workspace was kept
	Warning     string `json:"warning,omitempty"` // what could not be tidied up, and will be later
}

// Skip is a history that was to go and stayed.
type Skip struct {
	Ref
	Code   types.ErrCode `json:"code"` // CONFLICT: somebody is at it, and the next run tries again
	Reason string        `json:"reason"`
}

// Result is what a run has done. Its lists are never nil. The form of gc --json.
type Result struct {
	Mode       Mode          `json:"mode"`
	DryRun     bool          `json:"dry_run"`
	Started    time.Time     `json:"started"`
	Took       time.Duration `json:"took_ns"`
	Examined   int           `json:"examined"`
	Candidates []Candidate   `json:"candidates"`
	Archived   []Done        `json:"archived"`
	Deleted    []Done        `json:"deleted"`
	Skipped    []Skip        `json:"skipped"`
	Stay       []Skip        `json:"stay"` // archived histories whose workspaces stay where they are, and why
	Exempt     []Exemption   `json:"exempt"`
	Kept       int           `json:"kept"`
	Freed      int64         `json:"freed_bytes"` // of directories and workspaces, less the archives made of them
	Warnings   []string      `json:"warnings"`
}

// Plan says which histories would go at a time: with a later one, what is going to.
func (c *Collector) Plan(ctx context.Context, now time.Time) (Plan, error) {
	entries, err := c.entries(ctx, now)
	if err != nil {
		return Plan{}, err
	}
	return decide(c, entries, now), nil
}

// decide says which histories go: those that Decide says, and archives that are older than their own limit.
func decide(c *Collector, entries []Entry, now time.Time) Plan {
	plan := Decide(entries, c.o.Policy, now)
	plan.Candidates = append(plan.Candidates, expired(c.Archived(), c.o.Policy, now)...)
	return plan
}

// entries returns all histories. Those that the index does not have could not be read when it was
// made: they come with the reason.
func (c *Collector) entries(ctx context.Context, now time.Time) ([]Entry, error) {
	infos := c.o.Index.List()
	out := make([]Entry, 0, len(infos))
	listed := make(map[string]bool, len(infos))
	for i := range infos {
		if err := ended(ctx); err != nil {
			return nil, err
		}
		listed[infos[i].UUID.String()] = true
		e := c.entry(&infos[i])
		pin, err := step.ReadPin(c.fs, c.dir(e.UUID))
		switch {
		case err != nil:
			e.Pinned, e.Note = true, "its mark cannot be read: "+err.Error()
		case pin.Holds(now):
			e.Pinned, e.Note, e.Reprieved = true, pin.Note, pin.Reprieve
		}
		out = append(out, e)
	}
	dirs, err := c.fs.ReadDir(c.steps)
	if err != nil {
		return nil, storage("GC", c.steps, err)
	}
	for _, d := range dirs {
		var id types.UUID
		if listed[d.Name()] || !d.IsDir() || len(d.Name()) != 36 || id.UnmarshalText([]byte(d.Name())) != nil {
			continue
		}
		info, err := step.ReadInfo(c.fs, c.dir(id))
		switch types.CodeOf(err) {
		case types.ErrNotFound: // a history that never began, or is just beginning
		case "":
			e := c.entry(info)
			if info.UUID != id {
				e.UUID, e.Problem = id, e.File+": it is of another history, "+info.UUID.String()
			}
			out = append(out, e)
		default:
			e := c.entry(&step.ProcInfo{ProcStatus: types.ProcStatus{UUID: id}})
			e.Problem = err.Error()
			out = append(out, e)
		}
	}
	return out, nil
}

// Collect decides and does. It waits for a run that is under way. A history that cannot go is skipped
// with its reason, so the error is of ctx, of the request, or of reading the list.
func (c *Collector) Collect(ctx context.Context, req Request) (Result, error) {
	r := Result{Mode: req.Mode, DryRun: req.DryRun, Candidates: []Candidate{}, Archived: []Done{}, Deleted: []Done{}, Skipped: []Skip{}, Stay: []Skip{}, Exempt: []Exemption{}, Warnings: []string{}}
	if r.Mode == "" {
		r.Mode = c.o.Mode
	}
	if r.Mode != Archive && r.Mode != Delete {
		return r, types.Errorf(types.ErrInvalid, "GC", string(r.Mode), "the mode is not known; use archive or delete")
	}
	select {
	case c.turn <- struct{}{}:
		defer func() { <-c.turn }()
	case <-ctx.Done():
		return r, ended(ctx)
	}
	r.Started = time.Now()
	entries, err := c.entries(ctx, r.Started)
	if err != nil {
		return r, err
	}
	plan := decide(c, entries, r.Started)
	r.Examined, r.Candidates, r.Exempt, r.Kept, r.Warnings = len(entries), plan.Candidates, plan.Exempt, plan.Kept, plan.Warnings
	for _, cand := range plan.Candidates {
		if r.DryRun {
			break
		}
		if err = ended(ctx); err != nil {
			break
		}
		if req.Next != nil {
			req.Next(cand.UUID)
		}
		taker{Collector: c, mode: r.Mode}.collect(ctx, cand, &r)
	}
	if err == nil && !r.DryRun {
		err = stow(ctx, c, &r)
	}
	r.Took = time.Since(r.Started)
	return r, err
}

// taker takes histories out of the way, each with the right to it.
type taker struct {
	*Collector
	mode  Mode
	asked bool // for this history, by a person
}

// collect takes one history out of the way and notes what came of it.
func (t taker) collect(ctx context.Context, cand Candidate, r *Result) {
	if cand.Archived {
		t.mode = Delete
	}
	done, warning, err := t.one(ctx, cand)
	if warning != "" {
		r.Warnings = append(r.Warnings, warning)
	}
	switch {
	case err != nil:
		r.Skipped = append(r.Skipped, Skip{cand.Ref, types.CodeOf(err), err.Error()})
		return
	case t.mode == Archive:
		r.Archived = append(r.Archived, done)
	default:
		r.Deleted = append(r.Deleted, done)
	}
	r.Freed += done.Bytes - done.ArchiveSize
}

// one archives or deletes one history, which it owns for that time. After an error the history is
// there as it was.
func (t taker) one(ctx context.Context, cand Candidate) (done Done, warning string, err error) {
	id := cand.UUID
	if cand.Archived {
		done, err = t.deleteArchive(ctx, cand)
		return done, "", err
	}
	release, err := t.Hold(id, owner)
	if err != nil {
		return done, "", err
	}
	defer release()
	if !t.present(id) {
		return done, "", types.Errorf(types.ErrNotFound, "GC", t.dir(id), "the history is gone")
	}
	lease, err := t.o.Journal.Open(ctx, id, owner)
	if types.CodeOf(err) == types.ErrNotFound && t.present(id) { // a history without a journal; nobody else makes one while it is held
		lease, err = t.o.Journal.Acquire(ctx, id, owner)
	}
	if err != nil {
		return done, "", err
	}
	defer func() {
		if rerr := t.o.Journal.Release(context.WithoutCancel(ctx), id, lease.Epoch); err == nil && rerr != nil {
			warning = rerr.Error()
		}
	}()
	info, err := t.settled(ctx, cand)
	if err == nil {
		err = t.dropCovered(ctx, id)
	}
	if err != nil {
		return done, "", err
	}
	done = Done{Candidate: cand}
	if done.Bytes, err = t.size(t.dir(id)); err == nil && t.mode == Delete {
		done.Rescued, err = rescue(ctx, t.o.Workspaces, id)
	}
	if err != nil {
		return done, "", err
	}
	var head step.ArchiveHead
	if t.mode == Archive {
		head, done.ArchiveSize, err = t.archive(ctx, info, &done)
	} else {
		err = t.bury(ctx, info, &done)
	}
	if err != nil {
		return done, "", err
	}
	gone, err := t.vanish(id)
	if err != nil {
		return done, "", err
	}
	if t.mode == Archive {
		t.archives.Put(head, done.ArchiveSize)
	}
	if err := t.o.Index.Delete(id); err != nil {
		warning = err.Error() // the index is made anew at the next start
	}
	if t.mode == Delete {
		err = drop(ctx, t.Collector, id)
	}
	if err == nil { // what is left of it lets the next start finish this
		err = t.removeAll(gone)
	}
	if err != nil {
		warning = err.Error() + "; the rest of it is removed at the next start"
	}
	return done, warning, nil
}

// settled looks at the history itself, now that nobody else writes it: whether it has ended, when it
// was decided that it had, and is not pinned.
func (t taker) settled(ctx context.Context, cand Candidate) (*step.ProcInfo, error) {
	dir := t.dir(cand.UUID)
	info, err := step.ReadInfo(t.fs, dir)
	if types.CodeOf(err) == types.ErrNotFound {
		h, herr := step.ReadDir(ctx, t.fs, dir, cand.UUID)
		if herr != nil {
			return nil, herr
		}
		made := h.Info()
		info, err = &made, nil
	}
	if err != nil {
		return nil, err
	}
	now := time.Now()
	e := t.entry(info)
	if info.UUID != cand.UUID {
		return nil, types.Errorf(types.ErrStorage, "GC", e.File, "it is of another history, %s", info.UUID)
	}
	if warning := e.doubt(now); warning != "" {
		return nil, types.Errorf(types.ErrStorage, "GC", e.File, "%s", warning)
	}
	if !e.ended() || info.DeadAt.After(cand.DeadAt.Add(time.Minute)) {
		return nil, types.Errorf(types.ErrConflict, "GC", dir, "it has gone on since it was looked at")
	}
	pin, err := step.ReadPin(t.fs, dir)
	if err == nil && pin.Holds(now) && !(t.asked && pin.Reprieve) {
		err = types.Errorf(types.ErrConflict, "GC", dir, "it was just marked to be kept")
	}
	return info, err
}

// archive makes the archive of a history durable under its name. The snapshots stay, and so does the workspace until stow puts it away:
// what comes back from an archive can do everything that it could before.
func (t taker) archive(ctx context.Context, info *step.ProcInfo, done *Done) (step.ArchiveHead, int64, error) {
	head := step.NewArchiveHead(info, time.Now(), done.Why)
	dir := step.ArchiveDir(t.data)
	if err := durable.MkdirAll(t.fs, dir); err != nil {
		return head, 0, err
	}
	done.Archive = step.ArchivePath(t.data, info.UUID)
	tmp := tempName(done.Archive)
	head, size, err := t.pack(ctx, tmp, t.dir(info.UUID), head)
	if err != nil {
		return head, 0, err
	}
	if err = storage("Archive", done.Archive, t.fs.Rename(tmp, done.Archive)); err != nil {
		_ = t.fs.Remove(tmp) // the error that is returned says why
		return head, 0, err
	}
	return head, size, storage("Archive", dir, t.fs.SyncDir(dir))
}

// bury says durably that a history is deleted.
func (t taker) bury(ctx context.Context, info *step.ProcInfo, done *Done) error {
	if err := t.tombs.Problem(); err != nil {
		return err
	}
	how, err := giveUp(ctx, t.o.Workspaces, info.UUID)
	if err != nil {
		return err
	}
	done.Rescued = cmp.Or(how, done.Rescued)
	return t.tombs.Add(step.NewTomb(info, done.Why))
}

// rescue makes sure that no work is lost when the workspace of a history goes.
func rescue(ctx context.Context, w Workspaces, id types.UUID) (how string, err error) {
	if w == nil {
		return "", nil
	}
	if how, err = w.Rescue(ctx, id); err != nil {
		return "", types.Errorf(types.CodeOf(err), "Rescue", id.String(), "the work in its workspace cannot be kept: %w", err)
	}
	return how, nil
}

// giveUp removes the workspace, and says how what was in it is got back; "" = as Rescue has said.
func giveUp(ctx context.Context, w Workspaces, id types.UUID) (how string, err error) {
	if w == nil {
		return "", nil
	}
	if how, err = w.Remove(ctx, id); err != nil {
		return "", types.Errorf(types.CodeOf(err), "GC", id.String(), "its workspace cannot be removed: %w", err)
	}
	return how, nil
}

// drop removes what is kept of the files of a history that is deleted.
func drop(ctx context.Context, c *Collector, id types.UUID) error {
	if c.o.Workspaces == nil {
		return nil
	}
	if err := c.o.Workspaces.DropSnapshots(context.WithoutCancel(ctx), id); err != nil {
		return types.Errorf(types.CodeOf(err), "GC", id.String(), "its snapshots cannot be removed: %w", err)
	}
	return nil
}
