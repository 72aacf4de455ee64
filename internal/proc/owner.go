package proc

import (
	"os"

	"rnix/types"
)

// Owner returns the agent that a process of the operating system works for: the owner of the child that it is or descends
// from, or whose session it is in. inside is false for a process that has nothing to do with any child of ours. Nothing
// counts that a process has of itself: what stands in its environment may be copied from another's.
//
// It fails closed: a process that was adopted by us or our warden, because what stood between it and a child has
// ended, one that is gone, and one with more ancestors than anybody has, are inside, with owner 0. Where
// processes cannot be seen at all, nobody is inside.
func (m *Manager) Owner(pid int) (owner types.PID, inside bool) {
	if owner, inside = ownerNow(m, pid); inside && owner == 0 {
		family.forking.Lock() // it may be quicker than the start that it comes from
		defer family.forking.Unlock()
		return ownerNow(m, pid)
	}
	return owner, inside
}

// ownerNow is Owner by the children that are known.
func ownerNow(m *Manager, pid int) (owner types.PID, inside bool) {
	self := os.Getpid()
	if _, see := statOf(self); !see {
		return 0, false
	}
	leaders := make(map[int]types.PID)
	for _, c := range m.matching(func(*Child) bool { return true }) {
		leaders[c.process.Pid] = c.spec.Owner
	}
	at, ok := statOf(pid)
	if !ok {
		return 0, true // whoever it was could have handed its connection on
	}
	for range maxAncestors {
		for _, id := range []int{at.PID, at.session} {
			if owner, ours := leaders[id]; ours {
				return owner, true
			}
		}
		switch {
		case at.parent == self, m.guard != nil && at.identity == m.guard.warden:
			return 0, true
		case at.parent <= 1:
			return 0, false
		}
		above, ok := statOf(at.parent)
		now, still := statOf(at.PID)
		switch {
		case !still || now.identity != at.identity:
			return 0, true
		case now.parent != at.parent: // it has ended, and its children have another parent: above is whoever has its number now
			above = now
		case !ok: // it is not for us to see
			return 0, false
		}
		at = above
	}
	return 0, true
}

// maxAncestors bounds how far up Owner looks: more than anybody needs, and an agent can start as many as it likes.
const maxAncestors = 4096
