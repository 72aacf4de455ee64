package billing

import (
	"cmp"
	"context"
	"slices"

	"rnix/ipc"
	"rnix/types"
)

// kinship is who was started by whom, and who was forked from whom. It is made of all histories, and does not change.
type kinship struct {
	all   []spender
	at    map[types.UUID]int   // the index of each
	below map[types.UUID][]int // whom it has started
	forks map[types.UUID][]int // what was forked from it
}

func kinshipOf(all []spender) *kinship {
	k := &kinship{all: all, at: make(map[types.UUID]int, len(all)), below: map[types.UUID][]int{}, forks: map[types.UUID][]int{}}
	for i := range all {
		s := &all[i]
		k.at[s.uuid] = i
		if s.parent != (types.UUID{}) {
			k.below[s.parent] = append(k.below[s.parent], i)
		}
		if s.origin != (types.UUID{}) {
			k.forks[s.origin] = append(k.forks[s.origin], i)
		}
	}
	return k
}

// closure returns the indices of some histories and of all that links lead to from them, each once. A root that is not there any more, of which
// no tomb is left, has no index of its own.
func (k *kinship) closure(roots []types.UUID, links map[types.UUID][]int) (out []int) {
	seen := map[types.UUID]bool{}
	todo := slices.Clone(roots)
	for n := 0; n < len(todo); n++ {
		id := todo[n]
		if seen[id] {
			continue // also a circle, which only damaged files can make
		}
		seen[id] = true
		if i, ok := k.at[id]; ok {
			out = append(out, i)
		}
		for _, i := range links[id] {
			todo = append(todo, k.all[i].uuid)
		}
	}
	return out
}

// tree returns a history and its descendants.
func (k *kinship) tree(id types.UUID) []int { return k.closure([]types.UUID{id}, k.below) }

// start returns the first of the histories that were forked from one another.
func (k *kinship) start(id types.UUID) types.UUID {
	seen := map[types.UUID]bool{}
	for {
		i, ok := k.at[id]
		if !ok || k.all[i].origin == (types.UUID{}) || seen[id] {
			return id
		}
		seen[id] = true
		id = k.all[i].origin
	}
}

// forked returns all that were forked from a start, which is among them, and the descendants of each.
func (k *kinship) forked(start types.UUID) []int {
	ids := []types.UUID{start}
	for _, i := range k.closure(ids, k.forks) {
		ids = append(ids, k.all[i].uuid)
	}
	return k.closure(ids, k.below)
}

// picked returns the histories of some indices.
func (k *kinship) picked(list []int) []spender {
	out := make([]spender, len(list))
	for n, i := range list {
		out[n] = k.all[i]
	}
	return out
}

// sum is what histories have used together. All sums over families that are shown anywhere are made here.
func sum(list []spender, since string) ipc.CostLine {
	_, total := addUp(list, "process", since)
	for i := range list {
		if since == "" {
			total.ActiveMs += list[i].active.Milliseconds()
		}
	}
	return total
}

// together is sum for some histories of k, of which also those count that have used nothing.
func (k *kinship) together(list []int) *ipc.CostLine {
	l := sum(k.picked(list), "")
	l.Processes = len(list)
	return &l
}

// family is what a history has used, alone and together. forked are the sums that are known already, by their start.
func (k *kinship) family(i int, forked map[types.UUID]*ipc.CostLine) ipc.Family {
	s := &k.all[i]
	f := ipc.Family{PID: s.pid, UUID: s.uuid, Name: s.name, Own: *k.together([]int{i})}
	if tree := k.tree(s.uuid); len(tree) > 1 {
		f.Tree = k.together(tree)
	}
	if s.origin == (types.UUID{}) && len(k.forks[s.uuid]) == 0 {
		return f
	}
	f.Start = k.start(s.uuid)
	if forked[f.Start] == nil {
		forked[f.Start] = k.together(k.forked(f.Start))
	}
	f.Forks = forked[f.Start]
	return f
}

// families answers what processes have used together with others.
func (d *Service) families(ctx context.Context, _ *ipc.Peer, req ipc.FamiliesRequest) (ipc.FamiliesResponse, error) {
	resp := ipc.FamiliesResponse{Families: []ipc.Family{}}
	if n := len(req.Sets); n > ipc.MaxFamilySets {
		return resp, types.Errorf(types.ErrInvalid, "families", "", "%d sets are asked for and at most %d are taken", n, ipc.MaxFamilySets)
	}
	if err := d.Finder.Settled(ctx); err != nil {
		return resp, err
	}
	k, forked := kinshipOf(d.spenders()), map[types.UUID]*ipc.CostLine{}
	for _, name := range req.Targets {
		t, err := d.Finder.Resolve(name)
		if err != nil {
			return resp, err
		}
		if i, ok := k.at[t.UUID]; ok {
			resp.Families = append(resp.Families, k.family(i, forked))
		}
	}
	for _, set := range req.Sets {
		ids := make([]types.UUID, len(set))
		for i, name := range set {
			t, err := d.Finder.Resolve(name)
			if err != nil {
				return resp, err
			}
			ids[i] = t.UUID
		}
		resp.Sums = append(resp.Sums, *k.together(k.closure(ids, k.below)))
	}
	if len(req.Targets) > 0 || len(req.Sets) > 0 {
		return resp, nil
	}
	for i := range k.all {
		s := &k.all[i]
		alone := s.origin == (types.UUID{}) && len(k.below[s.uuid]) == 0 && len(k.forks[s.uuid]) == 0
		if !alone && (req.All || s.open) {
			resp.Families = append(resp.Families, k.family(i, forked))
		}
	}
	slices.SortFunc(resp.Families, func(a, b ipc.Family) int { return cmp.Compare(a.PID, b.PID) })
	return resp, nil
}

// Together returns what a history has used itself, and with its descendants.
func (d *Service) Together(id types.UUID) (own, tree ipc.CostLine) {
	k := kinshipOf(d.spenders())
	i, ok := k.at[id]
	if !ok {
		return own, tree
	}
	return *k.together([]int{i}), *k.together(k.tree(id))
}
