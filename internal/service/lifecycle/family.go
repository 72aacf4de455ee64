package lifecycle

import (
	"cmp"
	"slices"

	"rnix/types"
)

// maxDepth bounds a chain of parents; a longer one is a circle in damaged files.
const maxDepth = 64

// Family returns a process and all below it that have no end, wherever they lie: those above before those below. The process itself is the first,
// whatever has become of it.
func (n *Names) Family(root Target) []Target {
	family := []Target{root}
	parents := map[types.UUID]types.UUID{}
	seen := map[types.UUID]bool{root.UUID: true}
	add := func(t Target, parent types.UUID) {
		if !seen[t.UUID] && t.Place() != Over && n.Table.Descends(t.UUID, root.UUID) {
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
	slices.SortStableFunc(family[1:], func(a, b Target) int { return cmp.Compare(depth(a.UUID, parents), depth(b.UUID, parents)) })
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
