package tui

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"rnix/types"
)

// sortKey is what rows are put in order by. Its values are the names of columns, and part of the form of ui-state.json.
type sortKey string

const (
	byPID     sortKey = "pid"
	byName    sortKey = "name"
	byState   sortKey = "state"
	byStep    sortKey = "step"
	byTokens  sortKey = "tokens"
	byCost    sortKey = "cost"
	byElapsed sortKey = "elapsed"
	byMemory  sortKey = "rss"
)

// sortKeys are all of them, in the order in which a key goes through them.
var sortKeys = []sortKey{byPID, byName, byState, byStep, byTokens, byCost, byElapsed, byMemory}

// compare returns the order of two rows in which small stands before large; those that are the same are in
// order of PID and UUID.
func (k sortKey) compare(a, b *row, now time.Time) int {
	n := 0
	switch k {
	case byName:
		n = strings.Compare(strings.ToLower(title(a)), strings.ToLower(title(b)))
	case byState:
		n = cmp.Compare(urgency(a), urgency(b))
	case byStep:
		n = cmp.Compare(a.Step, b.Step)
	case byTokens:
		n = cmp.Compare(a.TokensUsed, b.TokensUsed)
	case byCost:
		n = cmp.Compare(a.CostUSD, b.CostUSD)
	case byElapsed:
		n = cmp.Compare(a.elapsed(now), b.elapsed(now))
	case byMemory:
		n = cmp.Compare(a.rss(), b.rss())
	}
	if n == 0 {
		n = cmp.Compare(a.PID, b.PID)
	}
	if n == 0 {
		n = strings.Compare(a.UUID.String(), b.UUID.String())
	}
	return n
}

// urgency puts those that need somebody first.
func urgency(p *row) int {
	switch {
	case p.paused():
		return 2
	case p.State == stateSuspended:
		return 1
	case p.waits():
		return 3
	case p.State == stateRunning, p.State == stateCreated:
		return 4
	case failed(p):
		return 0
	}
	return 5
}

// failed reports whether a process has ended, and not well.
func failed(p *row) bool { return p.ended() && p.Exit != nil && p.Exit.Code != types.ExitOK }

// rss returns the memory of the operating system's processes below it, in bytes.
func (p *row) rss() int64 {
	var n int64
	for i := range p.Children {
		n += p.Children[i].RSSBytes
	}
	return n
}

// title is what a process is called: its name, or what it is to do.
func title(p *row) string {
	return cmp.Or(p.Name, p.Intent)
}

// entry is a line of the list.
type entry struct {
	*row
	depth int
	last  uint64 // bit i: the line of depth i has no sibling below it
	match bool   // it is one that the filter asks for, and not only above one
}

// arrange returns the entries of all rows: flat, or each below its parent. A filter leaves those out that it does not
// match and that stand above none which it does.
func arrange(r *rows, k sortKey, desc, flat bool, matches func(*row) bool, now time.Time) []entry {
	order := func(a, b *row) int {
		n := k.compare(a, b, now)
		if desc {
			n = -n
		}
		return n
	}
	all := make([]*row, 0, len(r.by))
	for _, p := range r.by {
		all = append(all, p)
	}
	slices.SortFunc(all, order)
	out := make([]entry, 0, len(all))
	if flat {
		for _, p := range all {
			if matches == nil || matches(p) {
				out = append(out, entry{row: p, match: true})
			}
		}
		return out
	}
	below := make(map[types.UUID][]*row, len(all))
	var roots []*row
	for _, p := range all {
		if up := r.by[p.ParentUUID]; up != nil && p.ParentUUID != p.UUID {
			below[p.ParentUUID] = append(below[p.ParentUUID], p)
		} else {
			roots = append(roots, p)
		}
	}
	w := walker{below: below, matches: matches, seen: make(map[types.UUID]bool, len(all)), out: out}
	w.walk(roots, 0, 0)
	for _, p := range all { // a circle of parents has no root
		if !w.seen[p.UUID] {
			w.walk([]*row{p}, 0, 0)
		}
	}
	return w.out
}

// walker writes a tree down.
type walker struct {
	below   map[types.UUID][]*row
	matches func(*row) bool
	seen    map[types.UUID]bool
	out     []entry
}

// maxDepth is the deepest line that is drawn deeper than the one above it.
const maxDepth = 63

// walk reports whether something below matches.
func (w *walker) walk(siblings []*row, depth int, last uint64) bool {
	found := false
	lastShown := -1
	for i, p := range siblings {
		if w.seen[p.UUID] {
			continue
		}
		w.seen[p.UUID] = true
		bits := last
		if i == len(siblings)-1 && depth <= maxDepth {
			bits |= 1 << depth
		}
		at := len(w.out)
		hit := w.matches == nil || w.matches(p)
		w.out = append(w.out, entry{row: p, depth: depth, last: bits, match: hit})
		if !w.walk(w.below[p.UUID], depth+1, bits) && !hit {
			w.out = w.out[:at]
			continue
		}
		found, lastShown = true, at
	}
	if lastShown >= 0 && depth <= maxDepth && w.out[lastShown].last>>depth&1 == 0 { // those behind it were left out
		for i := lastShown; i < len(w.out); i++ {
			w.out[i].last |= 1 << depth
		}
	}
	return found
}

// branch draws the lines of the tree before a name.
func (t *Theme) branch(e *entry) string {
	if e.depth == 0 {
		return ""
	}
	depth := min(e.depth, 12) // deeper ones are at the same place, and a number says how deep
	var b strings.Builder
	for i := 1; i < depth; i++ {
		if e.last>>i&1 == 1 {
			b.WriteString("  ")
		} else {
			b.WriteString(t.pick("│ ", "| "))
		}
	}
	if e.last>>min(e.depth, maxDepth)&1 == 1 {
		b.WriteString(t.pick("└ ", "`-"))
	} else {
		b.WriteString(t.pick("├ ", "|-"))
	}
	return b.String()
}
