package proc

import (
	"fmt"
	"strings"
	"sync"
	"time"

	"rnix/types"
)

// A daemon that stands still, such as one that got SIGSTOP, cannot hold the children of a process when the lease of its session runs
// out. So the warden knows until when they may act, and ends them then.

// leaseGrace is how long a daemon that is awake may take to hold the children itself.
const leaseGrace = time.Second

// leaseMark begins what the warden is told of a lease. What it is told first is a path.
const leaseMark = "lease "

// Lease has the warden end the children that act for a session, if left passes without another call; 0 = it need not any more. id is
// that of the process that has the session: see LeaseOf. Without a warden nothing is done.
func Lease(m *Manager, id types.UUID, left time.Duration) {
	if m.guard == nil {
		return
	}
	until := time.Duration(0)
	if left > 0 {
		until = sinceBoot() + left
	}
	if err := m.guard.tell(fmt.Sprintf("%s%s %d", leaseMark, id, until), nil); err != nil {
		m.log.Warn("the warden does not know until when the children of a session may act", "uuid", id, "error", err)
	}
}

// LeaseOf says how m finds out for which session a child of a process acts: the UUID of the process that has it, or none. It is
// called before the first Start.
func LeaseOf(m *Manager, of func(types.PID, types.UUID) types.UUID) { m.leaseOf = of }

// leases are until when children may act, as the warden knows it.
type leases struct {
	mu sync.Mutex
	// +checklocks:mu
	by map[types.UUID]*lease
}

// lease is one of them.
type lease struct {
	until time.Duration // since boot
	over  time.Time     // when it was seen that it has run out
}

// heard takes in what the daemon says of a lease.
func (l *leases) heard(text string) {
	var name string
	var until time.Duration
	var id types.UUID
	if _, err := fmt.Sscanf(strings.TrimPrefix(text, leaseMark), "%s %d", &name, &until); err != nil || id.UnmarshalText([]byte(name)) != nil {
		return // only our own program writes here
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if until == 0 {
		delete(l.by, id)
		return
	}
	if l.by == nil {
		l.by = map[types.UUID]*lease{}
	}
	l.by[id] = &lease{until: until}
}

// due returns the sessions that have run out for longer than the grace, and forgets them.
func (l *leases) due(boot time.Duration, now time.Time) (ids []types.UUID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for id, x := range l.by {
		switch {
		case boot < x.until:
		case x.over.IsZero(): // both may have been asleep: the daemon gets its time from now on
			x.over = now
		case now.Sub(x.over) >= leaseGrace:
			delete(l.by, id)
			ids = append(ids, id)
		}
	}
	return ids
}

// endLeased ends the children that act for a session, whose registrations are in r. One that the daemon had no time to say the pid of is found
// by its token.
func (r registry) endLeased(id types.UUID) (killed []identity) {
	names, err := r.names()
	if err != nil {
		return nil
	}
	for _, name := range names {
		if e, err := r.read(name); err == nil && e.Lease == id && e.Boot == r.boot {
			t := newTree(root{e.Leader, e.Token})
			t.cradle = e.cradle()
			killed = append(killed, t.kill()...)
		}
	}
	return killed
}
