package trace

import (
	"slices"
	"time"
)

// critical finds the chain that decided when the root ended: from its end backwards, always along what ended
// last before. Its parts lie within their spans, do not overlap, and leave out only when the root did not run.
func (f *forest) critical() []Part {
	w := &walk{within: map[*node]bool{}}
	w.span(f.root, f.root.Start, f.root.End())
	slices.Reverse(w.parts)
	parts := w.without(f.root)
	for i := range parts {
		p := &parts[i]
		p.n.CriticalNs += p.to.Sub(p.from)
		for a := p.n; a != nil && !a.Critical; a = a.up {
			a.Critical = true
		}
	}
	for _, n := range w.linked {
		for a := n; a != nil && !a.Critical; a = a.up {
			a.Critical = true
		}
	}
	out := make([]Part, len(parts))
	for i, p := range parts {
		out[i] = Part{Span: p.n.ID, From: p.from, To: p.to}
	}
	return out
}

type part struct {
	n        *node
	from, to time.Time
}

// walk goes along the critical path, backwards.
type walk struct {
	parts  []part
	linked []*node
	within map[*node]bool // processes that the walk is in
}

func (w *walk) add(n *node, from, to time.Time) {
	if to.After(from) {
		w.parts = append(w.parts, part{n, from, to})
	}
}

// span divides the time from a to b, which lies within n, among n and what is below it.
func (w *walk) span(n *node, a, b time.Time) {
	if n.Kind == Process {
		w.within[n] = true
		defer delete(w.within, n)
	}
	list := make([]*node, 0, len(n.kids)+len(n.through))
	for _, k := range n.kids {
		if k.Kind == Process && n.Background || !k.Start.Before(b) || !k.End().After(a) {
			continue // nobody waited for it here
		}
		list = append(list, k)
	}
	for _, k := range n.through {
		if w.within[k] {
			continue // damaged: it seems to have started what it is within
		}
		if k.Start.Before(b) && k.End().After(a) && (n.Open || !k.End().After(b)) {
			list = append(list, k)
		}
	}
	if slices.ContainsFunc(list, func(k *node) bool { return k.Kind == Process }) { // they say more than that it waited
		list = slices.DeleteFunc(list, func(k *node) bool { return k.Kind == Wait && !k.Idle && n.Kind == Tool })
	}
	slices.SortStableFunc(list, func(x, y *node) int {
		if c := y.End().Compare(x.End()); c != 0 {
			return c
		}
		return rank(x) - rank(y)
	})
	t := b
	var running []*node // that end behind t, and stand in line, so that t was theirs
	for next := 0; t.After(a); {
		for ; next < len(list) && list[next].End().After(t); next++ {
			if k := list[next]; t.Equal(b) || inLine(k) {
				running = append(running, k)
			}
		}
		running = slices.DeleteFunc(running, func(k *node) bool { return !k.Start.Before(t) })
		var k *node
		end := t
		switch {
		case next < len(list) && (len(running) == 0 || list[next].End().Equal(t)):
			k = list[next]
			end = k.End()
			next++
		case len(running) > 0:
			i := len(running) - 1
			for j := range running {
				if rank(running[j]) < rank(running[i]) {
					i = j
				}
			}
			k = running[i]
			running = slices.Delete(running, i, i+1)
		}
		if k == nil || !end.After(a) {
			break
		}
		if !k.Start.Before(end) { // without any length
			continue
		}
		w.add(n, end, t)
		from := later(k.Start, a)
		w.span(k, from, end)
		if k.up != n {
			w.linked = append(w.linked, k)
		}
		t = from
		if before := w.before(n, k, t); before != nil { // what it waited for by name, not what ended by chance
			end := earlier(before.End(), t)
			w.add(n, end, t)
			t = end
			next = slices.Index(list, before)
			running = nil
		}
	}
	w.add(n, a, t)
}

// rank puts what says more before what says less, of two that end at the same time.
func rank(n *node) int {
	if n.Kind == Wait || n.Background {
		return 1
	}
	return 0
}

// inLine reports whether a span is one of those of which only one runs at a time.
func inLine(n *node) bool { return n.Kind == Step || n.Kind == Wait || n.Kind == Model }

// before returns the one of those that k had to wait for which ended last, if it is below n. It returns nil if
// that was long before k began and another one has just ended: then k waited for a place.
func (w *walk) before(n, k *node, t time.Time) *node {
	var last *node
	if len(k.after) == 0 {
		return nil
	}
	for _, id := range k.after {
		for _, x := range n.kids {
			if x.Kind == Process && x.UUID == id && !x.End().After(t.Add(tiny)) && x.Start.Before(t) && (last == nil || x.End().After(last.End())) {
				last = x
			}
		}
	}
	if last != nil && t.Sub(last.End()) > tiny && slices.ContainsFunc(n.kids, func(x *node) bool {
		return x.Kind == Process && !x.End().After(t) && t.Sub(x.End()) <= tiny
	}) {
		return nil
	}
	return last
}

// without returns the parts in order without the time in which the root did not run.
func (w *walk) without(root *node) []part {
	gaps := idle(root)
	var out []part
	for _, p := range w.parts {
		for _, g := range gaps {
			if !g.End().After(p.from) || !g.Start.Before(p.to) {
				continue
			}
			if g.Start.After(p.from) {
				out = append(out, part{p.n, p.from, g.Start})
			}
			p.from = g.End()
		}
		if p.to.After(p.from) {
			out = append(out, p)
		}
	}
	return out
}

// idle returns the times in which a process did not run, in order.
func idle(p *node) (gaps []*node) {
	var look func(n *node)
	look = func(n *node) {
		for _, k := range n.kids {
			switch {
			case k.Idle:
				gaps = append(gaps, k)
			case k.Kind != Process:
				look(k)
			}
		}
	}
	look(p)
	slices.SortFunc(gaps, func(a, b *node) int { return a.Start.Compare(b.Start) })
	return gaps
}
