package kernel

import (
	"cmp"
	"slices"

	"rnix/types"
)

// Group is a process group as it is at one moment.
type Group struct {
	ID      types.PGID
	Members []types.PID // in order
}

// NewGroup returns a number that no group has, or was given before. The group exists once it has a member.
func (k *KernelImpl) NewGroup() types.PGID {
	t := k.table
	t.mu.Lock()
	defer t.mu.Unlock()
	for t.lastGroup++; t.groups[t.lastGroup] != nil; t.lastGroup++ {
	}
	return t.lastGroup
}

// Groups returns the groups that have members, in order.
func (k *KernelImpl) Groups() []Group {
	members := k.table.groupMembers()
	out := make([]Group, 0, len(members))
	for id, ps := range members {
		g := Group{ID: id}
		for _, p := range ps {
			g.Members = append(g.Members, p.PID)
		}
		out = append(out, g)
	}
	slices.SortFunc(out, func(a, b Group) int { return cmp.Compare(a.ID, b.ID) })
	return out
}

// groupMembers returns the members of each group that has some. The lists are replaced, never changed.
func (t *table) groupMembers() map[types.PGID][]*Process {
	t.mu.Lock()
	defer t.mu.Unlock()
	members := make(map[types.PGID][]*Process, len(t.groups))
	for id, g := range t.groups {
		members[id] = g.members
	}
	return members
}
