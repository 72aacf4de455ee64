package kernel

import (
	"time"

	"golang.org/x/time/rate"

	"rnix/types"
)

// kin are the processes that descend from one that a person started. Guarded by table.mu.
type kin struct {
	living int
	births *rate.Limiter // nil until the first of them starts another
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
