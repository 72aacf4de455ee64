package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"rnix/internal/plumbing"
	"rnix/types"
)

// Teardown takes a root from a session. Once no session has it, it is removed if Manager.Teardown would
// remove each of its checkouts, and nothing else is in it; all are looked at before one is removed. Else
// it is parked, whole, and stays the session's. A root that is not known, or a session that has no
// share of it, is no error.
func (o Roots) Teardown(ctx context.Context, id, sessionID string) error {
	ctx, r, unlock, err := o.lock(ctx, id)
	if err != nil || r == nil {
		return err
	}
	defer unlock()
	i := slices.Index(r.Sessions, sessionID)
	if i < 0 {
		return nil
	}
	if len(r.Sessions) > 1 {
		r.Sessions = slices.Delete(r.Sessions, i, i+1)
		return o.m.ledger.writeRoot(r)
	}
	if leased, err := NewLeases(o.m).wantedGone(r.Key); leased || err != nil {
		return err
	}
	return o.remove(ctx, r)
}

// remove removes a root and the record of it. The caller has its lock.
func (o Roots) remove(ctx context.Context, r *rootRecord) error {
	_, err := os.Lstat(r.Path)
	there := err == nil
	if there && !r.isThere() {
		return r.parked([]string{"another directory has taken its place"})
	}
	var why []string
	var leaves []*record
	for _, l := range r.Leaves {
		rec, err := o.m.ledger.read(r.Key + l.Name)
		if err != nil {
			return err
		}
		if rec == nil { // it was removed before, and the root could not be
			continue
		}
		leaves = append(leaves, rec)
		if _, err := os.Lstat(rec.Path); err != nil {
			continue // remove looks at what its repository has left of it
		}
		if !rec.isThere() {
			why = append(why, l.Name+": another directory has taken its place")
			continue
		}
		h, err := o.m.holdings(ctx, rec, rec.Path)
		if err != nil {
			return err
		}
		for _, s := range h.Reasons() {
			why = append(why, l.Name+": "+s)
		}
	}
	if there {
		if why, err = r.strangers(why); err != nil {
			return err
		}
		if pid, _ := Worker(r.Path); pid != 0 && len(why) == 0 { // in a checkout it was seen above
			why = append(why, fmt.Sprintf("process %d works there", pid))
		}
	}
	if len(why) > 0 {
		return r.parked(why)
	}
	for _, rec := range leaves {
		if err := o.m.remove(ctx, rec); err != nil {
			if p, ok := errors.AsType[*ParkedError](err); ok {
				return r.parked([]string{filepath.Base(rec.Path) + ": " + strings.Join(p.Reasons, "; ")})
			}
			return err
		}
	}
	if there {
		if err := r.removeTop(); err != nil {
			return err
		}
	}
	return o.m.ledger.forget(r.Key)
}

// strangers adds a reason if there is something in a root beside its checkouts.
func (r *rootRecord) strangers(why []string) ([]string, error) {
	names, err := besides(r.Path)
	if err != nil {
		return nil, types.Errorf(types.ErrStorage, "Teardown", r.Path, "%w", err)
	}
	var found []string
	for _, name := range names {
		if !slices.ContainsFunc(r.Leaves, func(l rootLeaf) bool { return l.Name == name }) {
			found = append(found, name)
		}
	}
	all := reasons(why)
	all.list("files are in it beside the repositories", found)
	return all, nil
}

// removeTop removes the directory of a root whose checkouts are gone. What has come since is kept.
func (r *rootRecord) removeTop() error {
	dir := filepath.Join(r.Path, agentDir)
	if entries, err := os.ReadDir(dir); err == nil {
		for _, e := range entries {
			if isState(r.Path, agentDir+"/"+e.Name()) {
				_ = os.Remove(filepath.Join(dir, e.Name())) // what stays is found below
			}
		}
		_ = os.Remove(dir)
	}
	if err := os.Remove(r.Path); errors.Is(err, os.ErrExist) {
		return r.parked([]string{"something has come into it"})
	} else if err != nil {
		return types.Errorf(types.ErrStorage, "Teardown", r.Path, "%w", err)
	}
	return nil
}

// parked is the error for a root that stays.
func (r *rootRecord) parked(reasons []string) error {
	session := r.ID
	if len(r.Sessions) > 0 {
		session = r.Sessions[0]
	}
	return &types.SyscallError{Syscall: "Teardown", Device: r.Path, Code: types.ErrConflict,
		Err: &ParkedError{SessionID: session, Path: r.Path, Reasons: reasons, Look: "ls -la " + plumbing.ShellQuote(r.Path)}}
}
