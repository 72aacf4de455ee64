package worktree

import (
	"context"
	"os"

	"rnix/internal/plumbing"
	"rnix/types"
)

// dropStale takes a registration away whose work tree is not there any more, from the place where one
// is about to be made: git would refuse. One that holds commits or staged files that are nowhere else
// is an error.
func (p *attempt) dropStale(ctx context.Context) error {
	gitDir := plumbing.Registration(p.rec.Common, p.rec.Path)
	if gitDir == "" {
		return nil
	}
	if _, err := os.Lstat(p.rec.Path); err == nil {
		return occupied(p.rec.Path)
	}
	old := *p.rec
	old.GitDir = gitDir
	why, err := p.leftBehind(ctx, &old)
	if err != nil {
		return err
	}
	if len(why) > 0 {
		return parked(&old, why)
	}
	return p.unregister(ctx, &old)
}

// unregister makes a repository forget a work tree whose directory is gone.
func (m *Manager) unregister(ctx context.Context, r *record) error {
	gitDir := plumbing.Registration(r.Common, r.Path)
	if gitDir == "" {
		return nil
	}
	leave, err := shared.enter(ctx, r.Common, toWrite)
	if err != nil {
		return err
	}
	defer leave()
	if why, err := plumbing.Locked(gitDir); err == nil {
		if why != plumbing.Initializing || r.State != stateClaimed {
			return parked(r, []string{"its work tree is locked: " + why})
		}
		if _, err := m.git.git(ctx, nil, "-C", r.Parent, "worktree", "unlock", r.Path); err != nil {
			return types.Errorf(types.ErrDriver, "Remove", r.Path, "%w", err)
		}
	}
	_, err = m.git.git(ctx, nil, "-C", r.Parent, "worktree", "remove", "--", r.Path)
	if err != nil && plumbing.Registration(r.Common, r.Path) != "" {
		return types.Errorf(types.ErrDriver, "Remove", r.Path, "%w", err)
	}
	return nil
}
