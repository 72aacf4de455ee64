package trace

import (
	"slices"
	"time"

	"rnix/types"
)

// forest is the spans of all processes of a trace, put together.
type forest struct {
	root  *node
	procs map[types.UUID]*node
	all   []*node // of processes, in the order of the sources
	spans int
	texts texts

	parents map[types.UUID]types.UUID // as the sources say
}

// add makes the spans of a source, which was not added before.
func (f *forest) add(src *Source, now time.Time) {
	if src.History == nil || f.procs[src.History.UUID] != nil {
		return
	}
	p := build(src, now, &f.texts)
	f.procs[p.UUID], f.parents[p.UUID] = p, src.Parent
	f.all = append(f.all, p)
	f.spans += p.size()
	if f.root == nil {
		f.root = p
	}
}

// size is how many spans a span is, with those below it.
func (n *node) size() int {
	sum := 1
	for _, k := range n.kids {
		sum += k.size()
	}
	return sum
}

// join puts all processes below the root.
func (f *forest) join() {
	starts := map[types.UUID][]*node{} // calls that start a process, in order
	for _, p := range f.all {
		calls(p, func(n *node) {
			if n.Child != nil {
				starts[*n.Child] = append(starts[*n.Child], n)
			}
		})
	}
	for _, p := range f.all[1:] {
		f.attach(p, starts[p.UUID], f.parents[p.UUID])
	}
	f.awaited()
	f.root.order()
}

// calls goes over the calls of a process.
func calls(n *node, do func(*node)) {
	for _, k := range n.kids {
		switch k.Kind {
		case Tool:
			do(k)
		case Step:
			calls(k, do)
		}
	}
}

// attach puts a process below the call that has started it, or else below its parent, or else the root. A
// process that seems to begin before that has another clock, which is taken to be off by that much.
func (f *forest) attach(p *node, starts []*node, parent types.UUID) {
	up := f.procs[parent]
	if len(starts) > 0 {
		up = starts[0]
		for _, again := range starts[1:] {
			again.through = append(again.through, p)
		}
	}
	if up == nil || up.within(p) {
		up = f.root
	}
	if early := up.Start.Sub(p.Start); early > 0 {
		p.move(early)
	}
	p.up, p.Parent = up, up.ID
	up.kids = append(up.kids, p)
}

// within reports whether a span is another one, or below it.
func (n *node) within(p *node) bool {
	for a := n; a != nil; a = a.up {
		if a == p {
			return true
		}
	}
	return false
}

// awaited links calls that wait for children to the children that were started in the background.
func (f *forest) awaited() {
	for _, p := range f.all {
		var back []*node
		calls(p, func(n *node) {
			if n.Background {
				for _, k := range n.kids {
					if k.Kind == Process {
						back = append(back, k)
					}
				}
			}
		})
		if len(back) == 0 {
			continue
		}
		back = slices.Clip(back) // shared by many
		calls(p, func(n *node) {
			switch {
			case n.Name != "wait":
			case n.through == nil:
				n.through = back
			default:
				n.through = append(n.through, back...)
			}
		})
	}
}

// list returns the spans, a parent before its children.
func (f *forest) list() []Span {
	var out []Span
	var add func(n *node)
	add = func(n *node) {
		out = append(out, n.Span)
		for _, k := range n.kids {
			add(k)
		}
	}
	add(f.root)
	return slices.Clip(out)
}
