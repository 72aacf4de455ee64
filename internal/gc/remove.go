package gc

import (
	"cmp"
	"context"
	"slices"
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// Remove deletes one history for good, wherever it lies: in its directory or in an archive. Its workspace goes after its work was rescued, its
// snapshots go, and deleted.jsonl says that it was there and why it went. Errors are those of Removable.
func (c *Collector) Remove(ctx context.Context, id types.UUID, why string) (Done, error) {
	cand, err := c.Removable(ctx, id)
	if err != nil {
		return Done{}, err
	}
	cand.Why = why
	done, warning, err := taker{Collector: c, mode: Delete, asked: true}.one(ctx, cand)
	done.Warning = warning
	return done, err
}

// Removable describes a history that Remove would delete. CONFLICT: it runs or is suspended, is marked to be kept, or a process that is alive
// needs it; the error says which. NOT_FOUND: there is none; of one that was deleted before, the error says when.
func (c *Collector) Removable(ctx context.Context, id types.UUID) (Candidate, error) {
	if !c.present(id) {
		if a, ok := c.archives.Find(id); ok {
			return Candidate{Ref: refOf(&a.Info), Archived: true}, nil
		}
		if err := c.Explain(id); err != nil {
			return Candidate{}, err
		}
		return Candidate{}, types.Errorf(types.ErrNotFound, "Remove", id.String(), "no such history")
	}
	now := time.Now()
	entries, err := c.entries(ctx, now)
	if err != nil {
		return Candidate{}, err
	}
	n := slices.IndexFunc(entries, func(e Entry) bool { return e.UUID == id })
	if n < 0 {
		return Candidate{}, types.Errorf(types.ErrNotFound, "Remove", id.String(), "no such history")
	}
	e := &entries[n]
	e.Pinned = e.Pinned && !e.Reprieved
	if reason := cmp.Or(e.doubt(now), e.exemption(Policy{}, now, relatives(entries))); reason != "" {
		return Candidate{}, types.Errorf(types.ErrConflict, "Remove", id.String(), "%s%s", reason, e.wayOut())
	}
	return Candidate{Ref: refOf(&e.ProcInfo)}, nil
}

// wayOut says what makes a history removable; "" = nothing that a command does.
func (e *Entry) wayOut() string {
	switch {
	case e.Problem != "":
		return ""
	case !e.ended():
		return "; end it first: rnix kill " + e.UUID.String()
	case e.Pinned:
		return "; take the mark away first: rnix keep --off " + e.UUID.String()
	}
	return ""
}

// deleteArchive deletes an archived history for good; deleted.jsonl says that it was there.
func (t taker) deleteArchive(ctx context.Context, cand Candidate) (done Done, err error) {
	id := cand.UUID
	release, err := t.Hold(id, owner)
	if err != nil {
		return done, err
	}
	defer release()
	a, ok := t.archives.Find(id)
	if !ok || t.present(id) {
		return done, types.Errorf(types.ErrNotFound, "Delete", id.String(), "there is no archive of this history")
	}
	if err := ended(ctx); err != nil {
		return done, err
	}
	done = Done{Candidate: cand, Bytes: a.Size}
	if done.Rescued, err = rescue(ctx, t.o.Workspaces, id); err != nil {
		return done, err
	}
	how, err := giveUp(ctx, t.o.Workspaces, id)
	if err != nil {
		return done, err
	}
	done.Rescued = cmp.Or(how, done.Rescued)
	if err := t.tombs.Problem(); err != nil {
		return done, err
	}
	if err := t.tombs.Add(step.NewTomb(&a.Info, cand.Why)); err != nil {
		return done, err
	}
	return done, t.endArchive(ctx, id)
}

// endArchive removes an archive of which is on record that it goes, and all that is kept for it.
func (t taker) endArchive(ctx context.Context, id types.UUID) error {
	if err := drop(ctx, t.Collector, id); err != nil {
		return err
	}
	if err := t.removeArchive(id); err != nil {
		return err
	}
	t.archives.Delete(id)
	return nil
}
