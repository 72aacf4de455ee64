package autoresume

import (
	"slices"
	"time"

	"rnix/internal/service"
	"rnix/types"
)

// heads returns the head of the family of each history: the farthest ancestor of it that is among them.
func heads(ls []left) map[types.UUID]types.UUID {
	byID, out := map[types.UUID]left{}, map[types.UUID]types.UUID{}
	for _, l := range ls {
		byID[l.info.UUID] = l
	}
	for _, l := range ls {
		at := l
		for range service.MaxAncestors {
			parent, due := byID[at.info.ParentUUID]
			if !due {
				break
			}
			at = parent
		}
		out[l.info.UUID] = at.info.UUID
	}
	return out
}

// atMost returns at most max histories, and the others. Families stay whole, since a parent whose child stays would wait for it for good: the
// one that has done something last comes first, and one that does not fit any more stays.
func atMost(ls []left, max int) (due, stay []left) {
	if len(ls) <= max {
		return ls, nil
	}
	head, families, last := heads(ls), map[types.UUID][]left{}, map[types.UUID]time.Time{}
	var order []types.UUID
	for _, l := range ls {
		h := head[l.info.UUID]
		if families[h] == nil {
			order = append(order, h)
		}
		families[h] = append(families[h], l)
		if t := l.state.Time; t.After(last[h]) {
			last[h] = t
		}
	}
	slices.SortStableFunc(order, func(a, b types.UUID) int { return last[b].Compare(last[a]) })
	for _, h := range order {
		if f := families[h]; len(due)+len(f) <= max {
			due = append(due, f...)
		} else {
			stay = append(stay, f...)
		}
	}
	return due, stay
}

// parentsFirst sorts histories so that each comes behind its parent.
func parentsFirst(ls []left) []left {
	byID := map[types.UUID]left{}
	for _, l := range ls {
		byID[l.info.UUID] = l
	}
	var out []left
	var add func(l left, depth int)
	add = func(l left, depth int) {
		if _, due := byID[l.info.UUID]; !due || depth > service.MaxAncestors {
			return
		}
		delete(byID, l.info.UUID)
		if parent, ok := byID[l.info.ParentUUID]; ok {
			add(parent, depth+1)
		}
		out = append(out, l)
	}
	for _, l := range ls {
		add(l, 0)
	}
	return out
}
