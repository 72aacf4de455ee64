package lifecycle

import (
	"cmp"
	"slices"

	"rnix/internal/service"
	"rnix/types"
)

// maxDepth bounds a chain of parents; a longer one is a circle in damaged files.
const maxDepth = 64

// Family returns a process and all below it that have no end, wherever they lie: those above before those below. The process itself is the first,
// whatever has become of it.
func (n *Names) Family(root service.Target) []service.Target {
	family := []service.Target{root}
	parents := map[types.UUID]types.UUID{}
	seen := map[types.UUID]bool{root.UUID: true}
	add := func(t service.Target, parent types.UUID) {
		if !seen[t.UUID] && t.Place() != service.Over && n.Table.Descends(t.UUID, root.UUID) {
			seen[t.UUID], parents[t.UUID] = true, parent
			family = append(family, t)
		}
	}
	for _, i := range n.Table.List() {
		add(n.Of(&i), i.ParentUUID)
	}
	for _, s := range n.Index.Open() {
		if t, ok := n.ByUUID(s.UUID); ok { // it may have gone to run meanwhile
			add(t, s.ParentUUID)
		}
	}
	slices.SortStableFunc(family[1:], func(a, b service.Target) int { return cmp.Compare(depth(a.UUID, parents), depth(b.UUID, parents)) })
	return family
}

// depth is how many of the family are above one of them.
func depth(id types.UUID, parents map[types.UUID]types.UUID) (n int) {
	for ; n < maxDepth; n++ {
		up, ok := parents[id]
		if !ok {
			break
		}
		id = up
	}
	return n
}

// Apart returns those below a process that are paused, or those that work, by their PIDs.
func (n *Names) Apart(t service.Target, paused bool) (pids []types.PID) {
	for _, m := range n.Family(t)[1:] {
		if m.Paused() == paused && (paused || m.Place() == service.Runs) {
			pids = append(pids, m.PID)
		}
	}
	slices.Sort(pids)
	return pids
}

// StandsForAll reports whether a process is nothing without what it has started, having no model of its own, and some of that stands still.
func (n *Names) StandsForAll(t service.Target) bool {
	switch {
	case t.Kind() == "":
		return false
	case t.Place() == service.Runs:
		return t.Paused() || len(n.Apart(t, true)) > 0
	}
	return t.Place() == service.Stored
}
