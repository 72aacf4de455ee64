package proc

import (
	"maps"
	"os"
	"slices"
	"sync"
)

// family is what the managers of this program share: the system gives a program one set of children, whoever of them has started which,
// and its orphans to all of them alike. Most programs have one manager.
var family struct {
	forking sync.RWMutex // held for reading from a fork until the child is among the children of its manager

	mu sync.Mutex
	// +checklocks:mu
	managers map[*Manager]struct{} // those that are not closed
}

// join makes the children of a manager known to all.
func join(m *Manager) {
	family.mu.Lock()
	defer family.mu.Unlock()
	if family.managers == nil {
		family.managers = make(map[*Manager]struct{})
	}
	family.managers[m] = struct{}{}
}

// leave is called when no child of a manager is left, and none will come.
func leave(m *Manager) {
	family.mu.Lock()
	defer family.mu.Unlock()
	delete(family.managers, m)
}

// all returns the managers that are not closed.
func all() []*Manager {
	family.mu.Lock()
	defer family.mu.Unlock()
	return slices.Collect(maps.Keys(family.managers))
}

// everyones returns the children of all managers that match.
func everyones(match func(*Child) bool) (out []*Child) {
	for _, m := range all() {
		out = append(out, m.matching(match)...)
	}
	return out
}

// mine reports whether pid is this program, or that of a child that one of its managers waits for.
func mine(pid int) bool {
	return pid == os.Getpid() || slices.ContainsFunc(all(), func(m *Manager) bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		_, ok := m.children[pid]
		return ok
	})
}
