package proc

import (
	"os"
	"slices"
	"strconv"
)

// hunt finds those of a tree that fork and end faster than a whole process table can be read: it looks
// at new pids only. Not safe for concurrent use.
type hunt struct {
	tree *tree
	seen map[int]bool
}

// newHunt returns a hunt for whoever is born from now on.
func newHunt(t *tree) *hunt {
	h := &hunt{tree: t, seen: make(map[int]bool)}
	for _, pid := range pids() {
		h.seen[pid] = true
	}
	return h
}

// look calls take for each process of the tree that is new; inside holds the pids of those that were
// taken before. It reports whether it is sure that no other is left: not, if it found one, or if one
// has ended before it could be looked at, for that one may have left a child.
//
// Invariant: of each line of processes that fork and end, a list of pids has at least one that was
// alive, since pids are listed in their order, and a child has a greater one than its parent. It does
// not hold at the moment when pids begin again from the lowest.
func (h *hunt) look(inside []int, take func(identity) error) (sure bool, err error) {
	root := h.tree.roots[0]
	sure = true
	for _, pid := range slices.Backward(pids()) { // the youngest are the first to end
		if h.seen[pid] {
			continue
		}
		h.seen[pid] = true
		s, ok := statOf(pid)
		switch {
		case !ok || s.dead():
			sure = false
		case s.Start >= root.leader.Start && (s.group == root.leader.PID || s.session == root.leader.PID || slices.Contains(inside, s.parent) || tokenOf(pid) == root.token):
			sure = false
			if err := take(s.identity); err != nil {
				return false, err
			}
		case !alive(s.identity): // then its token was not read
			sure = false
		}
	}
	return sure, nil
}

// pids lists the processes, oldest first but where pids have begun again.
func pids() []int {
	dir, err := os.Open("/proc")
	if err != nil {
		return nil
	}
	defer dir.Close()
	names, _ := dir.Readdirnames(-1) // what was read before an error is as good as it gets
	out := make([]int, 0, len(names))
	for _, name := range names {
		if pid, err := strconv.Atoi(name); err == nil {
			out = append(out, pid)
		}
	}
	return out
}
