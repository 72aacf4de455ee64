package step

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"
	"time"

	rnixctx "rnix/context"
)

// ProfileOptions say what a profile is made of, besides the history.
type ProfileOptions struct {
	Now  time.Time
	Meta *Meta // the system prompt with its directory, the tools and the window; nil = not known
	// Step is the step whose prompt is shown; 0 = what the next prompt has.
	Step int
	// Preview is how many bytes of each message are shown; 0 = none.
	Preview int
}

// part is a piece of a prompt that is counted together with others.
type part struct {
	section, name string
	message       int // index of the segment; -1 = it stands before all messages
	bytes, weight int // weight: our estimate, in tokens
	tokens        int
	counted, sole bool // a share of a count; the whole of one
}

// mark is a prompt that the provider has counted.
type mark struct{ messages, tokens int }

// profiler makes a profile. It goes through the records once.
type profiler struct {
	h       *History
	o       ProfileOptions
	p       Profile
	settled Settled // of the last run

	head     []part   // what stands before the messages
	parts    [][]part // of each segment
	messages []*rnixctx.Message
	weights  []int // of the segments up to each, with it; by our estimate
	live     int   // index of the first segment of the conversation as it stands

	marks   []mark             // of the conversation since the last compaction, by the model of the last one
	ratio   float64            // the provider's last count over our estimate of the same prompt
	prompts []generationPrompt // since the last compaction
	tools   map[string]string  // names of calls of the last answer, by id
	inputs  int                // messages that come next and are what persons say
	first   bool               // the intent has come

	system    string // what the run in hand is told
	compacted bool   // since the prompt before
	before    *promptBefore
}

// generationPrompt is a prompt: behind which segment it ends.
type generationPrompt struct{ end, step int }

// promptBefore is what the prompt of the step before was.
type promptBefore struct {
	system, provider, model string
	live, end               int
	size, estimate          int // tokens: as shown, and as we would say
}

// isOfAnother reports whether a step was answered by another model. One without an answer names none.
func (b *promptBefore) isOfAnother(s *StepRecord) bool {
	return b != nil && b.provider != "" && s.Provider != "" && (b.provider != s.Provider || b.model != s.Model)
}

// Profile makes the profile of the history. A step that there is not is NOT_FOUND.
func (h *History) Profile(o ProfileOptions) (Profile, error) {
	last := len(h.Records)
	if o.Step > 0 {
		if _, err := h.Step(o.Step); err != nil {
			return Profile{}, err
		}
		for i, r := range slices.Backward(h.Records) {
			if r.Step != nil && r.Step.StepNumber == o.Step {
				last = i + 1
				break
			}
		}
	}
	f := &profiler{h: h, o: o, tools: map[string]string{}, ratio: 1}
	f.p = Profile{V: ProfileVersion, UUID: h.UUID, Time: o.Now, Step: o.Step, Sections: []Section{}, Segments: []Segment{}, Prompts: []PromptSize{}}
	f.p.Uncounted = uncounted(o.Meta)
	f.readHead()
	for i := range h.Records[:last] {
		f.record(&h.Records[i])
	}
	f.closeGeneration()
	f.finish()
	return f.p, nil
}

// uncounted says why the counts of a model are not those of our prompts; "" if they are.
func uncounted(m *Meta) string {
	if m == nil || m.Model == nil {
		return ""
	}
	switch d := m.Model.Driver; {
	case strings.HasSuffix(d, "-agent"):
		return "an agent's command line counts all that it asks in a step, not one prompt"
	case strings.HasSuffix(d, "-cli"):
		return "a command line adds its own prompts, and counts them too"
	}
	return ""
}

// readHead settles what stands before the messages. Of the last run that is: the tools of earlier runs are
// not recorded.
func (f *profiler) readHead() {
	var activated []SkillDetail
	for i := range f.h.Markers {
		m := &f.h.Markers[i]
		if m.Name == MarkerSpawn || m.Name == MarkerResumed {
			var s Settled
			if json.Unmarshal(m.Detail, &s) == nil {
				f.settled, activated = s, nil
			}
		} else if s, ok := Activated(m); ok {
			activated = append(activated, s)
		}
	}
	system := f.settled.SystemPrompt
	if m := f.o.Meta; m != nil {
		system = m.SystemPrompt
	} else {
		f.p.Missing = append(f.p.Missing, "the tools: process-meta.json is not there")
	}
	f.head = systemParts(WithSkills(system, f.settled.Skills, activated))
	if f.o.Meta != nil {
		t := part{section: SectionTools, message: -1}
		for i := range f.o.Meta.Tools {
			d := &f.o.Meta.Tools[i]
			t.bytes += len(d.Name) + len(d.Description) + len(d.Schema) + toolFrame
		}
		if t.weight = t.bytes / 4; t.bytes > 0 {
			f.head = append(f.head, t)
		}
	}
}

// toolFrame is about how many bytes stand around the three texts of a tool.
const toolFrame = 44

// systemParts divides a system prompt as package agent has put it together, and as skills that were activated later have lengthened it.
func systemParts(system string, skills []string) (out []part) {
	type begin struct {
		at            int
		section, name string
	}
	begins := []begin{{0, SectionSystem, ""}}
	find := func(heading, section, name string) {
		if i := strings.Index("\n\n"+system, "\n\n"+heading); i >= 0 {
			begins = append(begins, begin{max(i-2, 0), section, name})
		}
	}
	for _, s := range skills {
		find("# Skill: "+s+"\n", SectionSkills, s)
	}
	find("# The project's own instructions (", SectionProject, "")
	slices.SortStableFunc(begins, func(a, b begin) int { return cmp.Compare(a.at, b.at) })
	for i, b := range begins {
		end := len(system)
		if i+1 < len(begins) {
			end = begins[i+1].at
		}
		if text := system[b.at:end]; text != "" {
			out = append(out, part{section: b.section, name: b.name, message: -1, bytes: len(text), weight: rnixctx.EstimateTokens(text)})
		}
	}
	return out
}

func (f *profiler) headWeight() (n int) {
	for i := range f.head {
		n += f.head[i].weight
	}
	return n
}

func (f *profiler) record(r *Record) {
	switch {
	case r.Message != nil:
		f.put(r.Seq, r.Message, r)
	case r.Step != nil:
		f.step(r.Step)
	case r.Marker != nil:
		f.marker(r)
	}
}

func (f *profiler) marker(r *Record) {
	switch r.Marker.Name {
	case MarkerInput:
		f.inputs++
	case MarkerSpawn, MarkerResumed:
		var s Settled
		if json.Unmarshal(r.Marker.Detail, &s) == nil {
			if f.system = s.SystemPrompt + "\x00" + s.WorkDir; s.Git != nil {
				f.system += "\x00" + s.Git.Text
			}
		}
	case MarkerCompaction:
		messages, _ := Compacted(r.Marker)
		if messages == nil {
			return
		}
		f.closeGeneration()
		for i := f.live; i < len(f.p.Segments); i++ {
			f.p.Segments[i].Dropped = true
		}
		f.p.Dropped += len(f.p.Segments) - f.live
		f.p.Compactions++
		f.live, f.marks, f.compacted = len(f.p.Segments), nil, true
		f.first = false
		for i := range messages {
			f.put(r.Seq, &messages[i], nil)
		}
		f.first = true
	}
}

// put adds a message. r is its record; nil = a compaction has made it.
func (f *profiler) put(seq uint64, m *rnixctx.Message, r *Record) {
	n := len(f.p.Segments)
	parts := f.partsOf(n, m, r)
	s := Segment{Seq: seq, Role: m.Role, Tool: m.ToolCallID}
	most := 0
	for i := range parts {
		q := &parts[i]
		s.Tokens, s.Bytes = s.Tokens+q.weight, s.Bytes+q.bytes
		if s.Section == "" || q.weight > most && m.Role != rnixctx.RoleUser {
			s.Section, s.Name, most = q.section, q.name, q.weight
		}
	}
	f.weights = append(f.weights, f.weight(n)+s.Tokens)
	f.p.Segments, f.parts, f.messages = append(f.p.Segments, s), append(f.parts, parts), append(f.messages, m)
}

// weight is that of the first n segments.
func (f *profiler) weight(n int) int {
	if n == 0 {
		return 0
	}
	return f.weights[n-1]
}

func (f *profiler) step(s *StepRecord) {
	n := min(max(s.MessageCount, 0), len(f.p.Segments)-f.live)
	end := f.live + n
	f.prompts = append(f.prompts, generationPrompt{end, s.StepNumber})
	estimate := f.headWeight() + f.weight(end) - f.weight(f.live)
	q := PromptSize{Step: s.StepNumber, Messages: n, Tokens: int(float64(estimate)*f.ratio + 0.5), Estimated: true, Output: s.Output, CacheRead: s.CacheRead, CacheWrite: s.CacheWrite}
	if counted := s.Input + s.CacheRead + s.CacheWrite; counted > 0 && !s.Estimated && f.p.Uncounted == "" {
		q.Tokens, q.Estimated = counted, false
		if f.before.isOfAnother(s) {
			f.marks = nil // another model counts otherwise
		}
		for k := len(f.marks); k > 0 && (f.marks[k-1].messages >= n || f.marks[k-1].tokens >= counted); k-- {
			f.marks = f.marks[:k-1] // blocks of reasoning that the provider has taken out, for one
		}
		f.marks = append(f.marks, mark{n, counted})
		f.ratio = min(max(float64(counted)/float64(max(estimate, 1)), 0.5), 4)
	}
	f.compare(&q, s, end, estimate)
	f.p.Provider, f.p.Model = cmp.Or(s.Provider, f.p.Provider), cmp.Or(s.Model, f.p.Model)
	f.p.Steps++
	f.p.Sent += q.Tokens
	f.p.Cache.Read, f.p.Cache.Write = f.p.Cache.Read+s.CacheRead, f.p.Cache.Write+s.CacheWrite
	f.p.Cache.Said = f.p.Cache.Said || s.CacheRead+s.CacheWrite > 0
	f.p.Prompts = append(f.p.Prompts, q)
	f.p.Shown = n
}

// closeGeneration says of each segment since the last compaction in which prompts it was.
func (f *profiler) closeGeneration() {
	covered := f.live
	for k, q := range f.prompts {
		for ; covered < q.end; covered++ {
			s := &f.p.Segments[covered]
			s.FirstStep, s.Prompts = q.step, len(f.prompts)-k
			s.LastStep = f.prompts[len(f.prompts)-1].step
		}
	}
	f.prompts = f.prompts[:0]
}

// shared returns how many bytes two texts have in common at their beginning.
func shared(a, b string) int {
	n := min(len(a), len(b))
	for i := range n {
		if a[i] != b[i] {
			return i
		}
	}
	return n
}

func sameMessage(a, b *rnixctx.Message) bool {
	return a == b || a.Role == b.Role && a.Content == b.Content && a.ToolCallID == b.ToolCallID && a.IsError == b.IsError &&
		slices.EqualFunc(a.ToolCalls, b.ToolCalls, func(x, y rnixctx.ToolCall) bool {
			return x.ID == y.ID && x.Name == y.Name && bytes.Equal(x.Input, y.Input)
		}) &&
		slices.EqualFunc(a.Reasoning, b.Reasoning, func(x, y rnixctx.Block) bool {
			return x.Provider == y.Provider && bytes.Equal(x.Data, y.Data)
		})
}
