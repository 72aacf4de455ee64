package kernel

import (
	"time"

	"golang.org/x/time/rate"

	"rnix/internal/step"
	"rnix/types"
)

// kin are the processes that descend from one that a person started. Guarded by table.mu.
type kin struct {
	living int
	births *rate.Limiter // nil until the first of them starts another
	root   types.UUID    // under which it is among the families; zero = it is not
}

// descent is what a process keeps of those above it, so that it is still theirs when it goes on and they do not. Part
// of the on-disk format, as step.Descent.
func descent(p *Process) step.Descent {
	if p.root == p.UUID {
		return step.Descent{}
	}
	return step.Descent{Depth: p.depth, Root: p.root, ByAgent: p.byAgent}
}

// descend settles whose descendant a process is: that of its parent, or what its history says. The depth of one with
// a parent is settled when it is admitted.
func descend(p, parent *Process) {
	p.root = p.UUID
	switch f := p.opts.From; {
	case parent != nil:
		p.root, p.byAgent = parent.root, parent.byAgent || parent.opts.Body == nil
	case f != nil && f.State.Origin == nil && f.Was.Root != (types.UUID{}): // a fork is nobody's
		p.depth, p.root, p.byAgent = f.Was.Depth, f.Was.Root, f.Was.ByAgent
	}
}

// joinFamilyLocked puts a process into its family: that of its parent, or that which lives of the same root.
//
// +checklocks:t.mu
func (t *table) joinFamilyLocked(p *Process) {
	f := t.families[p.root]
	switch parent := p.rel.parent; {
	case parent != nil:
		f = parent.rel.family
	case f == nil:
		f = new(kin)
	}
	if p.root != p.UUID && f.root == (types.UUID{}) { // who descends from it may go on without it
		f.root = p.root
		t.families[p.root] = f
	}
	f.living++
	p.rel.family, p.rel.byAgent = f, p.byAgent
}

// leaveFamilyLocked takes a process out of its family, which ends with the last of them.
//
// +checklocks:t.mu
func (t *table) leaveFamilyLocked(p *Process) {
	f := p.rel.family
	if f.living--; f.living == 0 && t.families[f.root] == f {
		delete(t.families, f.root)
	}
}

// bornLocked counts the birth of a child of parent, or refuses it: a family may start so many within a minute. What
// is not counted: what a person starts, what goes on (it was counted when it was born), and what a process
// without a model starts, which has limits and back-offs of its own, unless an agent has started that: it would
// have chosen these limits.
//
// +checklocks:t.mu
func (t *table) bornLocked(parent *Process) error {
	if parent == nil || parent.opts.Body != nil && !parent.rel.byAgent {
		return nil
	}
	f, perMinute := parent.rel.family, t.limit.SpawnRate
	if f.births == nil {
		f.births = rate.NewLimiter(rate.Limit(float64(perMinute)/60), perMinute)
	}
	now := time.Now()
	if f.births.AllowN(now, 1) {
		return nil
	}
	wait := time.Duration((1 - f.births.TokensAt(now)) / float64(f.births.Limit()) * float64(time.Second))
	return types.Errorf(types.ErrExhausted, "Spawn", "", "agents that were started from one have started %d within a minute, the limit (limits.spawn_rate); the next can be started in %s", perMinute, wait.Round(10*time.Millisecond))
}
