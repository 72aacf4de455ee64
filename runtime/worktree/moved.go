package worktree

import (
	"context"
	"os"
	"path/filepath"

	"rnix/internal/durable"
	"rnix/internal/plumbing"
	"rnix/types"
)

// Moved brings what is known of the checkout of a session up to date after ParentDir was renamed: its record, and for a
// work tree what its repository knows of it. The repository must be where it was. Without a record, or if nothing was
// moved, it does nothing.
func (m *Manager) Moved(ctx context.Context, sessionID string) error {
	if checkSession("Moved", sessionID) != nil {
		return nil
	}
	if r, err := m.ledger.read(sessionID); err != nil || r == nil || filepath.Dir(r.Path) == m.dir {
		return err
	}
	ctx, unlock, err := m.ledger.lock(ctx, sessionID)
	if err != nil {
		return err
	}
	defer unlock()
	r, err := m.ledger.read(sessionID)
	if err != nil || r == nil || filepath.Dir(r.Path) == m.dir {
		return err
	}
	now := filepath.Join(m.dir, filepath.Base(r.Path))
	dev, ino, there := identity(now)
	if !there {
		return nil // it was gone before
	}
	if r.Strategy == StrategyWorktreeAdd {
		if err := Repair(ctx, r.Common, r.Path, now); err != nil {
			return err
		}
	}
	r.Path, r.Device, r.Inode = now, dev, ino
	return m.ledger.write(r)
}

// Repair tells a repository, named by its common git directory, that a linked work tree of it is in another directory now,
// and the work tree where the repository is. CONFLICT if it still is at the old place too: then the new one is a copy, and
// two work trees cannot share a registration. Git's own "worktree repair" would write into what has the old name now.
func Repair(ctx context.Context, common, old, now string) error {
	if _, err := os.Lstat(filepath.Join(now, ".git")); err != nil || plumbing.Registration(common, now) != "" {
		return nil // nothing of git's is there, or it is known
	}
	leave, err := shared.enter(ctx, common, toWrite)
	if err != nil {
		return err
	}
	defer leave()
	at := plumbing.Registration(common, old)
	if at != "" && plumbing.Dir(old) == at {
		return types.Errorf(types.ErrConflict, "Repair", now, "it is a copy of the git work tree %s, which is still there", old)
	}
	leads := plumbing.Dir(now) // nowhere if git was told to write relative paths
	if filepath.Dir(leads) == filepath.Join(common, "worktrees") {
		at = leads
	}
	if info, err := os.Stat(at); at == "" || err != nil || !info.IsDir() {
		return types.Errorf(types.ErrNotFound, "Repair", now, "the repository %s knows no such work tree any more", common)
	}
	if leads != at {
		if err := replace(filepath.Join(now, ".git"), "gitdir: "+at); err != nil {
			return err
		}
	}
	return replace(filepath.Join(at, "gitdir"), filepath.Join(now, ".git"))
}

// replace gives a file of git's another line. Who may read it stays as it was.
func replace(path, line string) error {
	info, err := os.Stat(path)
	if err == nil {
		if err := durable.WriteFile(durable.OS, path, []byte(line+"\n"), durable.Durable); err != nil {
			return err
		}
		err = os.Chmod(path, info.Mode().Perm())
	}
	if err != nil {
		return types.Errorf(types.ErrStorage, "Repair", path, "%w", err)
	}
	return nil
}
