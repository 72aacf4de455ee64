package proc

import (
	"errors"
	"time"

	"rnix/internal/sandbox"
	"rnix/types"
)

// Survivor is a child that an earlier run of the daemon has registered and not seen the end of.
type Survivor struct {
	Kind      Kind
	Owner     types.PID // in the earlier run
	OwnerUUID types.UUID
	Command   string
	StartedAt time.Time
	Killed    []int // the pids that were killed, its own and its descendants'; none if all had ended
	Recycled  bool  // its pid belongs to another process now, which was left alone
	Err       error // some of it could not be ended; it stays registered
}

// ReapSurvivors ends the children that earlier runs have left behind, with their descendants, and
// returns what it found, one for each registration. A process is ended only if it has the registered
// pid and start time and the machine was not booted since, if it descends from such a process or is
// in its session, if it carries the token of a registration, or if it is in a cgroup that children of such a daemon were born in. Registrations of a daemon that still
// lives are left alone. It returns the files that it could not read as an error, joined, beside the
// survivors that it could; they stay where they are.
//
// What a warden has ended meanwhile is among them; of what had left the children that started it, the kind is "" and the command a
// list of names.
func (m *Manager) ReapSurvivors() ([]Survivor, error) {
	return endLeft(m.registry, m.cages, func(e entry, _ *Survivor) {
		if e.Token != "" {
			m.registry.forget(e, m.log)
		}
	})
}

// stays reports whether a daemon lives. One that was just killed has let go of its lock before it has ended: that is waited for.
func stays(daemon identity) bool {
	if s, ok := statOf(daemon.PID); ok && s.identity == daemon && s.exiting {
		awaitGone([]identity{daemon}, time.Now().Add(emptying))
	}
	return alive(daemon)
}

// endLeft is ReapSurvivors; ended is called for each registration of which nothing is left, and with none for what was in a cgroup of children
// and is in no registration. Two programs do not do
// it at the same time: it is done by who holds the lock of the daemon, or by the warden before it lets go of that.
func endLeft(r registry, how cages, ended func(entry, *Survivor)) ([]Survivor, error) {
	names, err := r.names()
	if err != nil {
		return nil, err
	}
	var bad []error
	var entries []entry
	for _, name := range names {
		e, err := r.read(name)
		switch {
		case types.CodeOf(err) == types.ErrNotFound: // its child has just ended
		case err != nil:
			bad = append(bad, err)
		case e.Boot == r.boot && (e.Daemon == r.daemon || stays(e.Daemon)):
			// a child of this run, or of a daemon that looks after its own
		default:
			entries = append(entries, e)
		}
	}
	out := make([]Survivor, len(entries))
	roots := make([]root, 0, len(entries))
	at := make([]int, 0, len(entries)) // root to entry
	cradles := make([]cgroup, 0, len(entries))
	for i, e := range entries {
		out[i] = Survivor{Kind: e.Kind, Owner: e.Owner, OwnerUUID: e.OwnerUUID, Command: e.Command, StartedAt: e.Time, Killed: e.Killed}
		if e.Boot == r.boot {
			now, found := statOf(e.Leader.PID)
			out[i].Recycled = found && now.identity != e.Leader
			roots, at, cradles = append(roots, root{e.Leader, e.Token}), append(at, i), append(cradles, e.cradle())
		}
	}
	cages, unread := r.leftCages(how)
	bad = append(bad, unread...)
	born, unread := r.leftNurseries()
	bad = append(bad, unread...)
	still(born)
	var killed map[identity]int
	if len(roots) > 0 {
		all := newTree(roots...)
		bornOf(all, cradles)
		for i, rt := range roots {
			if g := cages[rt.token]; g != nil {
				all.claim(g.own(), i)
			}
		}
		killed = all.killAll()
		for _, g := range cages {
			_ = g.thaw() // what was killed can die now; an error shows again when it is removed
		}
		until := time.Now().Add(5 * time.Second)
		for id, of := range killed {
			s := &out[at[of]]
			s.Killed = append(s.Killed, id.PID)
			if len(awaitGone([]identity{id}, until)) > 0 {
				s.Err = errors.Join(s.Err, types.Errorf(types.ErrInternal, "ReapSurvivors", "", "process %d does not end, even by SIGKILL", id.PID))
			}
		}
	}
	for _, g := range cages {
		if err := g.remove(); err != nil {
			bad = append(bad, types.Errorf(types.ErrInternal, "ReapSurvivors", g.Dir, "cannot remove the cgroup of a child: %w", err))
		}
	}
	lost, unread := endNurseries(born, killed)
	bad = append(bad, unread...)
	for i, e := range entries {
		if out[i].Err == nil {
			if err := sandbox.GiveBack(e.Held); err != nil {
				bad = append(bad, types.Errorf(types.ErrStorage, "ReapSurvivors", "", "cannot remove what held names for the sandbox of a child: %w", err))
			}
			ended(e, &out[i])
		}
	}
	for i := range lost {
		ended(entry{}, &lost[i])
	}
	return append(out, lost...), errors.Join(bad...)
}
