package proc

import (
	"slices"

	"rnix/types"
)

// stills are the owners whose children stand still, with the kinds of children that do; none = all.
type stills map[types.PID][]Kind

// has reports whether a child is to stand still.
func (s stills) has(spec Spec) bool {
	kinds, ok := s[spec.Owner]
	return ok && (len(kinds) == 0 || slices.Contains(kinds, spec.Kind))
}

// Freeze makes all processes of an owner's children stand still, and their timeouts with them; with
// kinds, only those of children of these kinds. What is started for the owner from then on, or is being started, stands still as soon as it
// runs, until Thaw or KillOwner. It uses the cgroup that each child was born in, one that it makes for it, or SIGSTOP where that
// cannot be had. It returns how many processes it has frozen.
func (m *Manager) Freeze(owner types.PID, kinds ...Kind) int {
	m.mu.Lock()
	m.still[owner] = kinds
	m.mu.Unlock()
	n := 0
	for _, c := range m.of(owner) {
		if len(kinds) == 0 || slices.Contains(kinds, c.spec.Kind) {
			n += c.freeze()
		}
	}
	return n
}

// Thaw lets all processes of an owner's children go on.
func (m *Manager) Thaw(owner types.PID) {
	m.mu.Lock()
	delete(m.still, owner)
	m.mu.Unlock()
	for _, c := range m.of(owner) {
		c.thaw()
	}
}

// settle makes a child that is among the children now stand still if its owner's do. Freeze and Thaw may come meanwhile, and what came first may
// act last: so it looks again until what it did is what is wanted.
func settle(m *Manager, c *Child) {
	still := func() bool {
		m.mu.Lock()
		defer m.mu.Unlock()
		return m.still.has(c.spec)
	}
	for still() {
		c.freeze()
		if still() {
			return
		}
		c.thaw()
	}
}
