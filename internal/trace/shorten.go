package trace

import "slices"

// Shorten leaves out spans until no more than limit are there, and returns how many went: the shortest calls of
// models and tools first, then waits and steps, and processes last. What is on the critical path, has failed or
// is blamed stays longer than what is not. A span stays only with what it is in, and what is left out of the
// critical path becomes the part of the span that it was in.
func (t *Trace) Shorten(limit int) (cut int) {
	if len(t.Spans) <= limit {
		return 0
	}
	at := make(map[string]int, len(t.Spans))
	for i := range t.Spans {
		at[t.Spans[i].ID] = i
	}
	blamed := map[string]bool{}
	for _, b := range t.Blame {
		blamed[b.Span] = true
	}
	order := make([]int, len(t.Spans))
	for i := range order {
		order[i] = i
	}
	value := func(s *Span) int {
		n := map[Kind]int{Process: 6, Step: 2, Wait: 1}[s.Kind]
		switch {
		case s.Parent == "":
			return 20
		case blamed[s.ID]:
			return 19
		case s.Status == Failed:
			n += 3
		case s.Critical:
			n += 2
		}
		return n
	}
	worth := make([]int, len(t.Spans))
	for i := range worth {
		worth[i] = value(&t.Spans[i])
	}
	slices.SortStableFunc(order, func(a, b int) int {
		x, y := &t.Spans[a], &t.Spans[b]
		if n := worth[b] - worth[a]; n != 0 {
			return n
		}
		return int(min(max(y.Dur-x.Dur, -1), 1))
	})
	keep := make([]bool, len(t.Spans))
	kept := 0
	for _, i := range order {
		var chain []int
		for j := i; !keep[j]; {
			chain = append(chain, j)
			up, ok := at[t.Spans[j].Parent]
			if !ok {
				break
			}
			j = up
		}
		if kept+len(chain) > limit {
			continue
		}
		kept += len(chain)
		for _, j := range chain {
			keep[j] = true
		}
	}
	all := t.Spans
	parts := t.Critical[:0]
	for _, p := range t.Critical {
		i, ok := at[p.Span]
		for ok && !keep[i] {
			i, ok = at[all[i].Parent]
		}
		if ok && p.Span != all[i].ID {
			p.Span = all[i].ID
			all[i].CriticalNs += p.To.Sub(p.From)
		}
		if n := len(parts); n > 0 && parts[n-1].Span == p.Span && parts[n-1].To.Equal(p.From) {
			parts[n-1].To = p.To
			continue
		}
		parts = append(parts, p)
	}
	t.Critical = slices.Clip(parts)
	t.Spans = make([]Span, 0, kept)
	for i := range all {
		if keep[i] {
			t.Spans = append(t.Spans, all[i])
		}
	}
	return len(all) - kept
}
