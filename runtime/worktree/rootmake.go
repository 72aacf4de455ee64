package worktree

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"

	"rnix/internal/plumbing"
	"rnix/types"
)

// Provision makes the checkouts of a session with several repositories in one directory. Each is
// made as Manager.Provision makes one; one that is read-only and cannot be had is skipped, and any other that
// cannot be had ends it all: then nothing is there that was not there before, but for what was fetched
// and branches that were begun. Until all is made nobody finds the root by its id.
func (o Roots) Provision(ctx context.Context, spec RootSpec) (Root, error) {
	s, err := spec.settled()
	if err != nil {
		return Root{}, err
	}
	if s.ParentWorkareaID != "" {
		return o.join(ctx, s)
	}
	key := s.LeafName + rootMark
	ctx, unlock, err := o.m.ledger.lock(ctx, key)
	if err != nil {
		return Root{}, err
	}
	defer unlock()
	if err := o.settleOld(ctx, key); err != nil {
		return Root{}, err
	}
	r := &rootRecord{Layout: SessionRootV1, ID: newWorkareaID(), Key: key, State: stateClaimed, Path: filepath.Join(o.m.dir, s.LeafName), Mode: s.Mode,
		Sessions: []string{s.SessionID}, Selected: s.Selected}
	for _, repo := range s.Repositories {
		r.Leaves = append(r.Leaves, rootLeaf{Name: repo.Name, ReadOnly: repo.ReadOnly})
	}
	if _, err := os.Lstat(r.Path); err == nil {
		return Root{}, occupied(r.Path)
	}
	err = o.m.ledger.claimDir(key, r.Path, func(dev, ino uint64) error {
		r.Device, r.Inode = dev, ino
		return o.m.ledger.writeRoot(r)
	})
	if err != nil {
		return Root{}, err
	}
	if err := o.fill(ctx, r, s); err != nil {
		return Root{}, errors.Join(err, o.discard(context.WithoutCancel(ctx), r))
	}
	return o.root(r)
}

// fill makes the checkouts of a root, and its record ready.
func (o Roots) fill(ctx context.Context, r *rootRecord, s RootSpec) error {
	for _, repo := range s.Repositories {
		rec := &record{Session: r.Key + repo.Name, Path: filepath.Join(r.Path, repo.Name), Strategy: repo.Checkout.Strategy, Branch: repo.Checkout.Branch}
		if rec.Strategy == StrategyWorktreeAdd {
			rec.Parent, rec.Common = repo.Checkout.ParentRepoPath, plumbing.Repository(repo.Checkout.ParentRepoPath)
		}
		p := &attempt{Manager: o.m, spec: repo.Checkout, rec: rec}
		err := p.try(ctx)
		if err == nil {
			continue
		}
		if !repo.ReadOnly || repo.Name == s.Selected || ctx.Err() != nil || errors.Is(err, ErrLostOwnership) {
			return types.Errorf(types.CodeOf(err), "Provision", r.Path, "repository %s: %w", repo.Name, err)
		}
		o.m.log.Warn("a session begins without a repository that it was to look at", "session", s.SessionID, "repository", repo.Name, "error", err)
		r.Leaves = slices.DeleteFunc(r.Leaves, func(l rootLeaf) bool { return l.Name == repo.Name })
		r.Skipped = append(r.Skipped, SkippedRepository{Name: repo.Name, Reason: err.Error()})
	}
	r.State = stateReady
	if err := o.m.ledger.writeRoot(r); err != nil {
		r.State = stateClaimed
		return err
	}
	return nil
}

// settleOld takes away what an earlier run has left of a root. The caller has its lock.
func (o Roots) settleOld(ctx context.Context, key string) error {
	if err := NewLeases(o.m).ended(ctx, key); err != nil {
		return err
	}
	old, err := o.m.ledger.readRoot(key)
	if err != nil || old == nil {
		return err
	}
	if old.State == stateClaimed {
		return o.discard(ctx, old)
	}
	if _, err := os.Lstat(old.Path); err == nil {
		return occupied(old.Path)
	}
	return o.remove(ctx, old)
}

// discard removes a root that was never ready, and all of its checkouts: nobody has been told of
// them.
func (o Roots) discard(ctx context.Context, r *rootRecord) error {
	_, err := os.Lstat(r.Path)
	there := err == nil
	if there && !r.isThere() {
		return occupied(r.Path)
	}
	for _, l := range r.Leaves {
		rec, err := o.m.ledger.read(r.Key + l.Name)
		if err == nil && rec != nil {
			rec.State = stateClaimed
			err = o.m.discard(ctx, rec)
		}
		if err != nil {
			return err
		}
	}
	if there {
		if err := sweepAway(r.Path); err != nil {
			return err
		}
	}
	if err := os.Remove(o.m.ledger.coming(r.Key)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return types.Errorf(types.ErrStorage, "Remove", o.m.ledger.coming(r.Key), "%w", err)
	}
	return o.m.ledger.forget(r.Key)
}

// join gives a session a share of a root that another has made.
func (o Roots) join(ctx context.Context, s RootSpec) (Root, error) {
	ctx, r, unlock, err := o.lock(ctx, s.ParentWorkareaID)
	if err != nil {
		return Root{}, err
	}
	if r == nil {
		return Root{}, types.Errorf(types.ErrNotFound, "Provision", s.ParentWorkareaID, "%w", ErrUnknownWorkarea)
	}
	defer unlock()
	if err := NewLeases(o.m).ended(ctx, r.Key); err != nil {
		return Root{}, err
	}
	if r, err = o.m.ledger.readRoot(r.Key); err != nil {
		return Root{}, err
	}
	switch {
	case r == nil: // its lease has ended, and so has it
		return Root{}, types.Errorf(types.ErrNotFound, "Provision", s.ParentWorkareaID, "%w", ErrUnknownWorkarea)
	case r.Mode != RootShared && !slices.Contains(r.Sessions, s.SessionID):
		return Root{}, types.Errorf(types.ErrConflict, "Provision", r.Path, "%w: the root %s is not shared", ErrWorkareaRootOccupied, r.ID)
	case !r.isThere():
		return Root{}, types.Errorf(types.ErrConflict, "Provision", r.Path, "%w: the root %s is not there any more", ErrUnknownWorkarea, r.ID)
	case !slices.Contains(r.Sessions, s.SessionID):
		r.Sessions = append(r.Sessions, s.SessionID)
		if err := o.m.ledger.writeRoot(r); err != nil {
			return Root{}, err
		}
	}
	return o.root(r)
}

// lock takes the lock of a root, as ledger.lock does. nil, and no lock, if there is none with this
// id.
func (o Roots) lock(ctx context.Context, id string) (held context.Context, r *rootRecord, unlock func(), err error) {
	if r, err = o.m.ledger.rootByID(id); err != nil || r == nil {
		return ctx, nil, nil, err
	}
	held, unlock, err = o.m.ledger.lock(ctx, r.Key)
	if err != nil {
		return ctx, nil, nil, err
	}
	if r, err = o.m.ledger.readRoot(r.Key); err != nil || r == nil || r.ID != id || r.State != stateReady {
		unlock()
		return ctx, nil, nil, err
	}
	return held, r, unlock, nil
}
