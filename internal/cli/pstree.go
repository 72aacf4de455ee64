package cli

import (
	"slices"
	"strings"

	"rnix/ipc"
	"rnix/types"
)

// node is a process in the tree, in the order of the lines.
type node struct {
	proc  *ipc.Proc
	lasts []bool // for each level below the root: whether it is the last child there
	more  bool   // it has children
}

// processTree puts each process below its parent. Parents are found by UUID: after a restart a PID may
// mean nothing any more. A process whose parent is not in the list is a root. Siblings are in order of
// PID.
func processTree(procs []ipc.Proc) []node {
	index := make(map[types.UUID]int, len(procs))
	for i := range procs {
		index[procs[i].UUID] = i
	}
	children := make(map[int][]int)
	var roots []int
	for i := range procs {
		parent, ok := index[procs[i].ParentUUID]
		if !ok || parent == i || procs[i].ParentUUID == (types.UUID{}) {
			roots = append(roots, i)
			continue
		}
		children[parent] = append(children[parent], i)
	}
	byPID := func(a, b int) int {
		switch {
		case procs[a].PID < procs[b].PID:
			return -1
		case procs[a].PID > procs[b].PID:
			return 1
		}
		return a - b
	}
	seen := make([]bool, len(procs))
	var out []node
	var visit func(i int, lasts []bool)
	visit = func(i int, lasts []bool) {
		if seen[i] {
			return
		}
		seen[i] = true
		kids := children[i]
		slices.SortFunc(kids, byPID)
		out = append(out, node{&procs[i], slices.Clone(lasts), len(kids) > 0})
		for n, k := range kids {
			visit(k, append(lasts, n == len(kids)-1))
		}
	}
	slices.SortFunc(roots, byPID)
	for _, i := range roots {
		visit(i, nil)
	}
	for i := range procs { // what is left are circles, which only damaged files can make
		visit(i, nil)
	}
	return out
}

// glyphs are the parts of the tree's lines.
func glyphs(ascii bool) (tee, corner, bar, gap string) {
	if ascii {
		return "|- ", "`- ", "|  ", "   "
	}
	return "├─ ", "└─ ", "│  ", "   "
}

// branch returns what stands before a process.
func (n *node) branch(ascii bool) string {
	if len(n.lasts) == 0 {
		return ""
	}
	tee, corner, _, _ := glyphs(ascii)
	end := tee
	if n.lasts[len(n.lasts)-1] {
		end = corner
	}
	return n.trunk(ascii, n.lasts[:len(n.lasts)-1]) + end
}

// below returns what stands before something of the process itself.
func (n *node) below(ascii, last bool) string {
	tee, corner, _, _ := glyphs(ascii)
	if last && !n.more {
		tee = corner
	}
	return n.trunk(ascii, n.lasts) + tee
}

func (n *node) trunk(ascii bool, lasts []bool) string {
	_, _, bar, gap := glyphs(ascii)
	var b strings.Builder
	for _, last := range lasts {
		if last {
			b.WriteString(gap)
		} else {
			b.WriteString(bar)
		}
	}
	return b.String()
}
