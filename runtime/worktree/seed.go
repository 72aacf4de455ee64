package worktree

import "rnix/internal/plumbing"

// seedOptions returns how a clone is told of a repository from which it may take what it would else be
// sent. It is a cache: where it cannot be used, the clone is slower and the same; and the clone does not
// need it afterwards.
func (p *attempt) seedOptions() []string {
	if p.spec.Seed == "" {
		return nil
	}
	if gitDir := plumbing.Dir(p.spec.Seed); gitDir == "" && !plumbing.IsDir(p.spec.Seed) {
		p.log.Warn("the seed of a clone is no repository: all is fetched", "seed", p.spec.Seed, "session", p.spec.SessionID)
		return nil
	}
	return []string{"--reference-if-able=" + p.spec.Seed, "--dissociate"}
}
