package trace

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
)

// remember keeps the conversation, for those who ask for content.
func (b *builder) remember(r *step.Record) {
	if !b.src.Content {
		return
	}
	switch {
	case r.Message != nil:
		b.said = append(b.said, r.Message)
	case r.Marker != nil:
		if ms, ok := step.Compacted(r.Marker); ok {
			b.said, b.prompt = nil, 0
			for i := range ms {
				b.said = append(b.said, &ms[i])
			}
		}
	}
}

// promptOf returns what a prompt of n messages has beyond the one before it.
func (b *builder) promptOf(n int) string {
	if !b.src.Content {
		return ""
	}
	n = min(max(n, 0), len(b.said))
	var t strings.Builder
	for _, m := range b.said[min(b.prompt, n):n] {
		if m.Role != rnixctx.RoleAssistant && t.Len() < maxContent {
			fmt.Fprintf(&t, "[%s]\n%s\n", m.Role, m.Content)
		}
	}
	b.prompt = n
	return b.content(t.String())
}

// place puts the waits where they belong: into the innermost span that holds all of them.
func (b *builder) place() {
	for _, n := range b.gaps {
		b.put(n)
	}
	for _, n := range b.pauses {
		b.put(n)
	}
	b.calm(b.proc)
	b.proc.Dur = max(b.proc.Dur, b.clock.now.Sub(b.proc.Start))
	b.proc.order()
}

// put puts a wait below the innermost span that holds it.
func (b *builder) put(n *node) {
	up := b.proc
	for {
		var in []*node
		for _, k := range up.kids {
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
