package groups

import (
	"cmp"
	"strconv"
	"sync"

	"rnix/types"
)

// Names are the names that people gave to groups. They are forgotten when the daemon ends, as the memberships are. Its zero value has none.
type Names struct {
	mu     sync.Mutex            // leaf
	byName map[string]types.PGID // +checklocks:mu
}

// Labels names groups for people: by name where they have one.
func (n *Names) Labels(ids []types.PGID) (out []string) {
	for _, id := range ids {
		out = append(out, cmp.Or(n.of(id), strconv.FormatUint(uint64(id), 10)))
	}
	return out
}

func (n *Names) find(name string) (types.PGID, bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok := n.byName[name]
	return id, ok
}

// findOrMake returns the number of a name. A name that was used keeps its number.
func (n *Names) findOrMake(name string, number func() types.PGID) types.PGID {
	n.mu.Lock()
	defer n.mu.Unlock()
	id, ok := n.byName[name]
	if !ok {
		if n.byName == nil {
			n.byName = map[string]types.PGID{}
		}
		id = number()
		n.byName[name] = id
	}
	return id
}

// of returns the name of a group; "" if it has none.
func (n *Names) of(id types.PGID) string {
	n.mu.Lock()
	defer n.mu.Unlock()
	for name, other := range n.byName {
		if other == id {
			return name
		}
	}
	return ""
}
