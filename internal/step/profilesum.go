package step

import (
	"cmp"
	"slices"
	"strings"

	rnixctx "rnix/context"
)

// compare says what of a prompt the prompt of the step before had at its beginning.
func (f *profiler) compare(q *PromptSize, s *StepRecord, end, estimate int) {
	b := f.before
	f.before = &promptBefore{f.system, s.Provider, s.Model, f.live, end, q.Tokens, estimate}
	if b != nil && s.Provider == "" {
		f.before.provider, f.before.model = b.provider, b.model
	}
	q.Compacted, f.compacted = f.compacted, false
	if q.Added = q.Tokens; b == nil {
		return
	}
	q.Added -= b.size
	scale := float64(b.size) / float64(max(b.estimate, 1))
	switch {
	case b.isOfAnother(s):
		q.Broke = &Break{By: BreakModel}
	case b.system != f.system:
		n := shared(b.system, f.system)
		q.Broke, q.Stable = &Break{By: BreakResume, Byte: n}, int(float64(n/4)*scale)
	case b.live == f.live:
		q.Stable = b.size
	default:
		same, weight := 0, f.headWeight()
		for ; b.live+same < b.end && f.live+same < end; same++ {
			if !sameMessage(f.messages[b.live+same], f.messages[f.live+same]) {
				break
			}
			weight += f.p.Segments[f.live+same].Tokens
		}
		if b.live+same == b.end {
			q.Stable = b.size
			break
		}
		q.Broke = &Break{By: BreakCompaction, Message: same + 1}
		if f.live+same < end {
			x, y := f.messages[b.live+same], f.messages[f.live+same]
			if x.Role == y.Role && x.ToolCallID == y.ToolCallID {
				q.Broke.Byte = shared(x.Content, y.Content)
				weight += q.Broke.Byte / 4
			}
		}
		q.Stable = int(float64(weight) * scale)
	}
	q.Stable = min(q.Stable, b.size, q.Tokens)
	c := &f.p.Cache
	if q.Broke != nil {
		q.Broke.Lost = b.size - q.Stable
		c.Breaks++
		c.BreakSteps = append(c.BreakSteps, s.StepNumber)
	}
	c.Stable, c.Sent = c.Stable+q.Stable, c.Sent+q.Tokens
}

// finish counts the prompt that is shown, and what follows from that.
func (f *profiler) finish() {
	end := len(f.p.Segments)
	if f.o.Step > 0 {
		end = f.live + f.p.Shown
		f.p.Segments = f.p.Segments[:end]
	}
	f.p.Shown = end - f.live
	all := make([]*part, 0, len(f.head)+2*f.p.Shown)
	for i := range f.head {
		all = append(all, &f.head[i])
	}
	ends := make([]int, f.p.Shown+1) // how many parts the first messages have, with the head
	ends[0] = len(all)
	for i := f.live; i < end; i++ {
		for j := range f.parts[i] {
			all = append(all, &f.parts[i][j])
		}
		ends[i-f.live+1] = len(all)
	}
	from, before := 0, 0
	for _, m := range f.marks {
		if m.messages > f.p.Shown {
			break // the prompt of the step that is shown was not counted, and is shorter
		}
		share(all[from:ends[m.messages]], m.tokens-before)
		from, before = ends[m.messages], m.tokens
	}
	for _, q := range all[from:] {
		q.tokens = int(float64(q.weight)*f.ratio + 0.5)
	}
	f.p.Estimated = from < len(all) || len(all) == 0
	f.sections(all)
	f.segments(end)
	f.window()
	f.p.Cache.Next = 0
	if b := f.before; b != nil && b.live == f.live && f.o.Step == 0 {
		f.p.Cache.Next = min(b.size, f.p.Tokens)
	}
}

// share divides what a provider has counted among parts, by their weights. The shares add up to the count.
func share(parts []*part, tokens int) {
	total, given, weight := 0, 0, 0
	for _, q := range parts {
		total += max(q.weight, 1)
	}
	for _, q := range parts {
		weight += max(q.weight, 1)
		upTo := int(int64(tokens) * int64(weight) / int64(total))
		q.tokens, q.counted, q.sole = upTo-given, true, len(parts) == 1
		given = upTo
	}
}

// sectionOrder is the order in which sections are shown.
var sectionOrder = []string{SectionSystem, SectionSkills, SectionProject, SectionTools, SectionIntent, SectionInputs, SectionUser,
	SectionMessages, SectionNotes, SectionPlan, SectionAssistant, SectionReasoning, SectionCalls, SectionToolResult}

func (f *profiler) sections(all []*part) {
	type key struct{ section, name string }
	sums, last := map[key]*Section{}, map[key]int{}
	sole := map[key]bool{}
	for _, q := range all {
		k := key{q.section, q.name}
		s := sums[k]
		if s == nil {
			s = &Section{Section: q.section, Name: q.name, Counted: true}
			sums[k], last[k], sole[k] = s, -1, true
		}
		s.Bytes, s.Tokens, s.Counted = s.Bytes+q.bytes, s.Tokens+q.tokens, s.Counted && q.counted
		sole[k] = sole[k] && q.sole
		if q.message >= 0 && q.message != last[k] {
			s.Messages++
			last[k] = q.message
		}
		f.p.Tokens += q.tokens
	}
	for k, s := range sums {
		s.Estimated = !sole[k]
		f.p.Sections = append(f.p.Sections, *s)
	}
	slices.SortFunc(f.p.Sections, func(a, b Section) int {
		return cmp.Or(cmp.Compare(slices.Index(sectionOrder, a.Section), slices.Index(sectionOrder, b.Section)), cmp.Compare(b.Tokens, a.Tokens), cmp.Compare(a.Name, b.Name))
	})
}

// segments takes the counts of parts over into the messages.
func (f *profiler) segments(end int) {
	for i := f.live; i < end; i++ {
		s := &f.p.Segments[i]
		s.N, s.Tokens, s.Counted = i-f.live+1, 0, true
		for _, q := range f.parts[i] {
			s.Tokens, s.Counted = s.Tokens+q.tokens, s.Counted && q.counted
		}
		if f.o.Preview > 0 {
			s.Preview = preview(f.messages[i], f.o.Preview)
		}
	}
}

// preview is how a message begins, in one line.
func preview(m *rnixctx.Message, most int) string {
	text := m.Content
	if text == "" {
		text = RawText(m)
	}
	text = strings.ToValidUTF8(text[:min(len(text), most)], "")
	return strings.Join(strings.Fields(text), " ")
}

// growthOver is from how many of the last steps the growth is taken.
const growthOver = 10

// window says how much room is left. A step that a compaction came before says nothing of growth.
func (f *profiler) window() {
	w := &f.p.Window
	w.From = "process-meta.json does not say; an early version wrote it"
	switch m := f.o.Meta; {
	case m == nil:
	case m.Model == nil && m.SystemPrompt == "" && len(m.Tools) == 0: // a supervisor, a run of a workflow
		w.From = "there is none: no model reads this"
	case m.Model != nil:
		if w.Tokens, w.From = m.Model.ContextWindow, m.Model.WindowFrom; w.Tokens == 0 {
			w.From = "not known: set context_window of provider " + m.Model.Provider + " in providers.yaml"
		}
	}
	for i := len(f.p.Prompts) - 1; i > 0 && w.Over < growthOver; i-- {
		if q := &f.p.Prompts[i]; !q.Compacted && q.Estimated == f.p.Prompts[i-1].Estimated {
			w.Growth, w.Over = w.Growth+q.Added, w.Over+1
		}
	}
	if w.Over > 0 {
		w.Growth /= w.Over
	}
	if w.Tokens == 0 {
		return
	}
	w.CompactAt, w.Used = int(float64(w.Tokens)*rnixctx.FullAt), int(int64(f.p.Tokens)*1000/int64(w.Tokens))
	if w.Growth > 0 {
		left := max(w.CompactAt-f.p.Tokens, 0) / w.Growth
		w.StepsLeft = &left
	}
}
