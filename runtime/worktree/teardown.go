package worktree

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// ParkedError says that a checkout was not removed, since it holds work that is nowhere else, or since
// that could not be ruled out. errors.Is(err, ErrParked) is true for it.
type ParkedError struct {
	SessionID string
	Path      string
	Reasons   []string // for people
	Look      string   // a command that shows it
}

func (e *ParkedError) Error() string {
	return fmt.Sprintf("%v: %s; look at it with: %s", ErrParked, strings.Join(e.Reasons, "; "), e.Look)
}

func (e *ParkedError) Is(target error) bool { return target == ErrParked }

// parked is the error for a checkout that stays.
func parked(r *record, reasons []string) error {
	dir, git := r.Path, "git -C "
	if _, err := os.Lstat(dir); err != nil && r.GitDir != "" {
		dir, git = r.GitDir, "git --git-dir="
	}
	look := git + plumbing.ShellQuote(dir) + " status"
	switch {
	case r.Strategy == StrategyEmpty:
		look = "ls -la " + plumbing.ShellQuote(dir)
	case dir == r.GitDir:
		look = git + plumbing.ShellQuote(dir) + " log HEAD"
	}
	return &types.SyscallError{Syscall: "Teardown", Device: r.Path, Code: types.ErrConflict,
		Err: &ParkedError{SessionID: r.Session, Path: r.Path, Reasons: reasons, Look: look}}
}

// Teardown removes the checkout of a session, if Look finds no reason against it: nothing is changed,
// untracked, ignored, stashed or staged there, wherever in it; each commit is on a remote or, for a work
// tree, on another branch; no tag is in a clone only; no operation of git's is half-way; it holds no other
// repository; and nobody works there or has locked it. The files that runtime/state writes do not count. Else it is
// parked: it stays as it is, the session stays known, and the error is a *ParkedError. The branch of a
// work tree stays in its repository. A session that is not known is no error, so Teardown can be
// called again. One that is leased is removed when the lease ends, so that is no error either: Path
// still knows it then.
func (m *Manager) Teardown(ctx context.Context, sessionID string) error {
	if checkSession("Teardown", sessionID) != nil {
		return nil // nothing was ever made under such a name
	}
	if r, err := m.ledger.read(sessionID); err != nil || r == nil {
		return err
	}
	ctx, unlock, err := m.ledger.lock(ctx, sessionID)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := m.ledger.read(sessionID)
	if err != nil || r == nil {
		return err
	}
	if r.State == stateClaimed {
		return m.discard(ctx, r)
	}
	if leased, err := NewLeases(m).wantedGone(sessionID); leased || err != nil {
		return err
	}
	return m.remove(ctx, r)
}

// remove removes a checkout that was ready, and the record of it. The caller has the lock of its
// session.
func (m *Manager) remove(ctx context.Context, r *record) error {
	if _, err := os.Lstat(r.Path); errors.Is(err, os.ErrNotExist) {
		return m.removeGone(ctx, r)
	}
	if !r.isThere() {
		return parked(r, []string{"another directory has taken its place"})
	}
	h, err := m.holdings(ctx, r, r.Path)
	if err != nil {
		return err
	}
	if why := h.Reasons(); len(why) > 0 {
		return parked(r, why)
	}
	if r.Strategy == StrategyWorktreeAdd {
		err = m.removeLinked(ctx, r, h.shown)
	} else {
		err = m.removeWhole(ctx, r)
	}
	if err != nil {
		return err
	}
	return m.ledger.forget(r.Session)
}

// holdings looks at the checkout of a record, which is in a directory now.
func (m *Manager) holdings(ctx context.Context, r *record, dir string) (Holdings, error) {
	at := Place{Dir: dir, GitDir: r.GitDir, Common: r.Common, Strategy: r.Strategy}
	if r.Strategy == StrategyClone {
		at.GitDir, at.noted, at.home = filepath.Join(plumbing.Resolved(dir), ".git"), heard{r.URL, r.Tips, r.Tags}, r.Path
	}
	return m.git.look(ctx, at, 0)
}

// removeGone forgets a checkout that somebody else has removed.
func (m *Manager) removeGone(ctx context.Context, r *record) error {
	if r.Strategy == StrategyWorktreeAdd {
		if r.GitDir = plumbing.Registration(r.Common, r.Path); r.GitDir != "" {
			why, err := m.leftBehind(ctx, r)
			if err != nil {
				return err
			}
			if len(why) > 0 {
				return parked(r, why)
			}
		}
		if err := m.unregister(ctx, r); err != nil {
			return err
		}
	}
	return m.ledger.forget(r.Session)
}

// removeLinked lets git remove a work tree. Git looks once more, and refuses what is not clean. shown are
// files of runtime/state in it that git has to be told to overlook.
func (m *Manager) removeLinked(ctx context.Context, r *record, shown []string) error {
	leave, err := shared.enter(ctx, r.Common, toWrite)
	if err != nil {
		return err
	}
	defer leave()
	conf, err := m.git.configOf(ctx, "-C", r.Path)
	if err == nil && len(shown) > 0 {
		list := filepath.Join(m.ledger.dir, r.Session+".overlooked")
		defer os.Remove(list)
		if err := os.WriteFile(list, []byte("/"+strings.Join(shown, "\n/")+"\n"), durable.FilePerm); err != nil {
			return types.Errorf(types.ErrStorage, "Teardown", list, "%w", err)
		}
		// In place of the user's own list: of what that hides nothing was found.
		conf.quiet = append(conf.quiet, plumbing.Set("core.excludesFile", list))
	}
	if err == nil {
		_, err = m.git.git(ctx, conf.quiet, "-C", r.Parent, "worktree", "remove", "--", r.Path)
	}
	if err == nil {
		return nil
	}
	if ctx.Err() != nil {
		return err
	}
	if _, serr := os.Lstat(r.Path); errors.Is(serr, os.ErrNotExist) && plumbing.Registration(r.Common, r.Path) == "" {
		return nil
	}
	if failed(err) {
		return parked(r, []string{"git does not remove it: " + err.Error()})
	}
	return err
}

// removeWhole removes a clone or an empty directory. It is moved out of the way first and looked at
// again, so that what was written meanwhile is seen.
func (m *Manager) removeWhole(ctx context.Context, r *record) error {
	aside := filepath.Join(m.ledger.dir, r.Session+".leaving")
	if err := os.Rename(r.Path, aside); err != nil {
		return types.Errorf(types.ErrStorage, "Teardown", r.Path, "%w", err)
	}
	h, err := m.holdings(ctx, r, aside)
	why := h.Reasons()
	if err == nil && len(why) == 0 {
		err = sweepAway(aside)
	}
	if _, serr := os.Lstat(aside); serr == nil {
		err = errors.Join(err, os.Rename(aside, r.Path))
	}
	if err == nil && len(why) > 0 {
		return parked(r, why)
	}
	return err
}
