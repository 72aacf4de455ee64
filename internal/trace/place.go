package trace

import (
	"cmp"
	"slices"
	"time"
)

// place puts the waits where they belong: into the innermost span that holds all of them.
func (b *builder) place() {
	steps := slices.Clip(b.proc.kids)
	for _, n := range b.gaps {
		b.put(n, steps)
	}
	for _, n := range b.pauses {
		b.put(n, steps)
	}
	b.calm(b.proc)
	b.proc.Dur = max(b.proc.Dur, b.clock.now.Sub(b.proc.Start))
	b.proc.order()
}

// put puts a wait below the innermost span that holds it. steps are those of the process, in order.
func (b *builder) put(n *node, steps []*node) {
	up := b.proc
	for kids := during(steps, n); ; kids = up.kids {
		var in []*node
		for _, k := range kids {
			if k.Kind != Wait && !k.Start.After(n.Start) && !k.End().Before(n.End()) && k.Dur > 0 {
				in = append(in, k)
			}
		}
		if len(in) != 1 {
			break
		}
		up = in[0]
	}
	n.up, n.Parent, n.UUID, n.Step = up, up.ID, b.src.History.UUID, up.Step
	n.ID = b.id("wait " + cmp.Or(map[bool]string{true: "idle"}[n.Idle], n.Name))
	up.kids = append(up.kids, n)
	if n.Idle {
		for a := up; a != nil; a = a.up {
			a.IdleNs += n.Dur
		}
	}
}

// during returns those of the steps of a process, of which one begins when the one before it has ended, that can
// hold a wait.
func during(steps []*node, n *node) []*node {
	end, _ := slices.BinarySearchFunc(steps, n.Start, func(k *node, t time.Time) int {
		if k.Start.After(t) {
			return 1
		}
		return -1
	})
	first := end
	for first > 0 && !steps[first-1].End().Before(n.End()) {
		first--
	}
	return steps[first:end]
}

// calm gives calls that do nothing but wait a span that says for what.
func (b *builder) calm(n *node) {
	for _, k := range n.kids {
		what, waits := map[string]string{"recv": "a message", "wait": "children"}[k.Name]
		if k.Kind == Tool && waits && k.Dur > 0 {
			w := &node{up: k, Span: k.Span}
			w.Span = Span{Parent: k.ID, PID: k.PID, UUID: k.UUID, Kind: Wait, Name: "waits for " + what, Start: k.Start, Dur: k.Dur, Open: k.Open,
				Status: OK, Step: k.Step, Run: k.Run, ID: b.id("wait of " + k.ID)}
			if w.Open {
				w.Status = Open
			}
			k.kids = append(k.kids, w)
			continue
		}
		b.calm(k)
	}
}

// order sorts what is below a span by its start.
func (n *node) order() {
	slices.SortStableFunc(n.kids, func(a, b *node) int { return a.Start.Compare(b.Start) })
	for _, k := range n.kids {
		k.order()
	}
}

// move shifts a span with all that is below it.
func (n *node) move(by time.Duration) {
	n.Start = n.Start.Add(by)
	for _, k := range n.kids {
		k.move(by)
	}
}
