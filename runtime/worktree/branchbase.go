package worktree

import (
	"context"
	"errors"

	"rnix/types"
)

// ErrNotAtBase says that a checkout with RequireBranchBase does not begin at its base. It was taken back.
var ErrNotAtBase = errors.New("the checkout does not begin at the tip of its base")

// literalBase refuses, for RequireBranchBase, what is not itself the name of a branch.
func (s ProvisionSpec) literalBase() error {
	if why := badBranch(s.base()); why != "" {
		return types.Errorf(types.ErrInvalid, "Provision", s.SessionID, "%w: %q %s; with RequireBranchBase give the name alone, such as main", ErrInvalidBaseRef, s.base(), why)
	}
	return nil
}

// atBase makes sure, for RequireBranchBase, that what is checked out is what the remote had of the base
// when it was last asked.
func (p *attempt) atBase(ctx context.Context) error {
	if !p.spec.RequireBranchBase {
		return nil
	}
	base := p.spec.base()
	tip := p.commitIn(ctx, p.rec.Path, "refs/remotes/origin/"+base)
	if tip == "" {
		return types.Errorf(types.ErrNotFound, "Provision", p.spec.SessionID, "%w: the remote has no branch %s that was fetched", ErrInvalidBaseRef, base)
	}
	if p.rec.BaseSHA = p.commitIn(ctx, p.rec.Path, "HEAD"); p.rec.BaseSHA != tip {
		return types.Errorf(types.ErrConflict, "Provision", p.spec.SessionID, "%w: %s is at %s, and the checkout at %s: name another branch, or do not require it",
			ErrNotAtBase, base, tip, p.rec.BaseSHA)
	}
	return nil
}
