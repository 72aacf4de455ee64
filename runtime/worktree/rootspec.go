package worktree

import (
	"slices"

	"rnix/internal/plumbing"
	"rnix/types"
)

// settled returns the spec with all that was left out, or what is wrong with it.
func (s RootSpec) settled() (RootSpec, error) {
	const op = "Provision"
	invalid := func(format string, args ...any) (RootSpec, error) {
		return s, types.Errorf(types.ErrInvalid, op, s.SessionID, format, args...)
	}
	if err := checkSession(op, s.SessionID); err != nil {
		return s, err
	}
	if s.ParentWorkareaID != "" {
		if s.LeafName != "" || s.Mode != "" || len(s.Repositories) > 0 || s.Selected != "" {
			return invalid("a session that joins the root %s takes it as it is: leave leaf name, mode and repositories out", s.ParentWorkareaID)
		}
		return s, nil
	}
	if s.LeafName == "" {
		s.LeafName = s.SessionID
	} else if err := checkLeaf(op, "leaf name", s.LeafName); err != nil {
		return s, err
	}
	switch s.Mode {
	case "":
		s.Mode = RootExclusive
	case RootExclusive, RootShared:
	default:
		return invalid("there is no mode %q: use %s or %s", s.Mode, RootExclusive, RootShared)
	}
	if len(s.Repositories) == 0 || len(s.Repositories) > maxRepositories {
		return invalid("a root has 1 to %d repositories, not %d", maxRepositories, len(s.Repositories))
	}
	if s.Selected == "" {
		s.Selected = s.Repositories[0].Name
	}
	s.Repositories = slices.Clone(s.Repositories)
	names, branches := map[string]bool{}, map[[2]string]string{}
	for i := range s.Repositories {
		r := &s.Repositories[i]
		if err := checkLeaf(op, "name of a repository", r.Name); err != nil {
			return s, err
		}
		switch {
		case len(r.Name) > maxRepositoryName:
			return invalid("the repository's name %s is longer than %d bytes", r.Name, maxRepositoryName)
		case names[r.Name]:
			return invalid("two repositories have the name %s", r.Name)
		case r.Checkout.SessionID != "" || r.Checkout.LeafName != "":
			return invalid("repository %s: session id and leaf name are those of the root: leave them out", r.Name)
		case r.Checkout.Strategy == StrategyEmpty:
			return invalid("repository %s: an empty directory is no repository", r.Name)
		case r.ReadOnly && !slices.Contains(s.Attests, IsolatedReadOnlyV1):
			return invalid("repository %s is read-only, and nothing says that the session is kept from writing there: attest %s", r.Name, IsolatedReadOnlyV1)
		}
		names[r.Name] = true
		r.Checkout.SessionID = s.SessionID
		c, err := r.Checkout.settled()
		if err != nil {
			return s, types.Errorf(types.CodeOf(err), op, s.SessionID, "repository %s: %w", r.Name, err)
		}
		r.Checkout = c
		if c.Strategy == StrategyWorktreeAdd && c.Branch != "" {
			at := [2]string{plumbing.Repository(c.ParentRepoPath), c.Branch}
			if other := branches[at]; other != "" {
				return invalid("the repositories %s and %s are work trees of one repository on one branch, %s: name two branches", other, r.Name, c.Branch)
			}
			branches[at] = r.Name
		}
	}
	if !names[s.Selected] {
		return invalid("there is no repository %s to be selected", s.Selected)
	}
	return s, nil
}
