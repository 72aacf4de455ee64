package supervise

import (
	"slices"
	"time"
)

// kid is one child.
type kid struct {
	id       ID
	spec     *Child
	state    State
	killed   bool      // of Stopping
	deadline time.Time // of Stopping: when it is killed; zero = never
	due      time.Time // of Delayed
	called   bool      // of Delayed: its fact is in the mail
	since    time.Time // of the last start that succeeded
	tries    int       // restarts in a row
	starts   int       // that succeeded or not
	restarts int
}

// stop takes one child towards its end, and reports whether it is there.
func (k *kid) stop(now time.Time) (_ Action, down bool) {
	switch {
	case k.state == Running && k.spec.Shutdown == BrutalKill:
		k.state, k.killed, k.deadline = Stopping, true, time.Time{}
		return Action{Do: Kill, Child: k.id}, false
	case k.state == Running:
		k.state, k.killed, k.deadline = Stopping, false, time.Time{}
		if k.spec.Shutdown != Infinity {
			k.deadline = now.Add(k.spec.Shutdown)
		}
		return Action{Do: Term, Child: k.id}, false
	case k.state == Stopping && !k.killed && !k.deadline.IsZero() && !k.deadline.After(now):
		k.killed = true
		return Action{Do: Kill, Child: k.id}, false
	case k.state == Stopping && k.killed:
		return Action{}, false
	case k.state == Stopping:
		return Action{Until: k.deadline}, false
	case k.state == Starting:
		return Action{}, false
	}
	k.state = Down
	return Action{}, true
}

// kids are the children of a supervisor, in order of their start.
type kids []*kid

func (ks kids) find(id ID) *kid {
	for _, k := range ks {
		if k.id == id {
			return k
		}
	}
	return nil
}

func (ks *kids) forget(k *kid) {
	*ks = slices.DeleteFunc(*ks, func(o *kid) bool { return o == k })
}

// firstDue returns when the first delay is over; zero if there is none, or while they are held.
func (ks kids) firstDue(held bool) (first time.Time) {
	for _, k := range ks {
		if !held && k.state == Delayed && !k.called && (first.IsZero() || k.due.Before(first)) {
			first = k.due
		}
	}
	return first
}

// overdue returns the children whose delay is over and that nobody was told of, the first one first.
func (ks kids) overdue(now time.Time) []*kid {
	var over []*kid
	for _, k := range ks {
		if k.state == Delayed && !k.called && !k.due.After(now) {
			over = append(over, k)
		}
	}
	slices.SortStableFunc(over, func(a, b *kid) int { return a.due.Compare(b.due) })
	return over
}

// affected returns the children that are started again with k, in order of their start.
func (ks kids) affected(k *kid, s Strategy) []*kid {
	switch s {
	case OneForAll:
		return slices.Clone(ks)
	case RestForOne:
		return slices.Clone(ks[slices.Index(ks, k):])
	}
	return []*kid{k}
}

// restarts are the times of the restarts that are not known to be too old, oldest first.
type restarts []time.Time

// allow notes a restart and reports whether it is allowed. One that is as old as the period counts.
func (r *restarts) allow(now time.Time, s Spec) bool {
	*r = append(slices.DeleteFunc(*r, func(t time.Time) bool { return now.Sub(t) > s.Period }), now)
	return len(*r) <= s.MaxRestarts
}
