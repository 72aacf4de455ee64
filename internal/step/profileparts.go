package step

import (
	"strings"

	rnixctx "rnix/context"
)

// partsOf divides a message into what belongs to different sections. n is the index of its segment; r is its
// record, nil for one that a compaction has made.
func (f *profiler) partsOf(n int, m *rnixctx.Message, r *Record) (out []part) {
	content, _, reasoning := m.Parts()
	add := func(section, name string, size, weight int) {
		out = append(out, part{section: section, name: name, message: n, bytes: size, weight: weight})
	}
	switch m.Role {
	case rnixctx.RoleTool:
		section, name := SectionToolResult, f.tools[m.ToolCallID]
		if planning(name) {
			section, name = SectionPlan, ""
		}
		add(section, name, len(m.Content), content)
	case rnixctx.RoleAssistant:
		clear(f.tools)
		if m.Content != "" || len(m.ToolCalls) == 0 {
			add(SectionAssistant, "", len(m.Content), content)
		}
		for _, c := range m.ToolCalls {
			f.tools[c.ID] = c.Name
			section := SectionCalls
			if planning(c.Name) {
				section = SectionPlan
			}
			one := rnixctx.Message{ToolCalls: []rnixctx.ToolCall{c}}
			_, weight, _ := one.Parts()
			add(section, "", len(c.Name)+len(c.Input), weight)
		}
		if len(m.Reasoning) > 0 {
			size := 0
			for _, b := range m.Reasoning {
				size += len(b.Data)
			}
			add(SectionReasoning, "", size, reasoning)
		}
	case rnixctx.RoleUser:
		section, cut := f.said(m, r)
		left := len(m.Content) - m.LeftOut()
		cut = min(cut, left)
		for _, piece := range []struct {
			section string
			text    string
		}{{section, m.Content[:cut]}, {SectionInputs, m.Content[cut:left]}, {SectionNotes, m.Content[left:]}} {
			if piece.text != "" || len(out) == 0 && piece.section == section {
				add(piece.section, "", len(piece.text), rnixctx.EstimateTokens(piece.text))
			}
		}
		out[0].weight += content - rnixctx.EstimateTokens(m.Content)
	default:
		add(SectionSystem, "", len(m.Content), content)
	}
	return out
}

// planning reports whether a call only notes a plan.
func planning(tool string) bool { return tool == "plan" || tool == "replan" }

// said says which section a user message belongs to, and how many of its bytes: behind an intent come its inputs.
func (f *profiler) said(m *rnixctx.Message, r *Record) (string, int) {
	whole := len(m.Content)
	if !f.first {
		f.first = true
		if intent := f.settled.Intent; intent != "" && len(f.settled.Inputs) > 0 && strings.HasPrefix(m.Content, intent+"\n\n") {
			return SectionIntent, len(intent)
		}
		return SectionIntent, whole
	}
	switch {
	case strings.HasPrefix(m.Content, "[MESSAGES]") && (r == nil || len(r.Delivered) > 0):
		return SectionMessages, whole
	case r != nil && len(r.Delivered) > 0:
		return SectionUser, whole
	case f.inputs > 0:
		f.inputs--
		return SectionUser, whole
	case r == nil && !strings.HasPrefix(m.Content, "["): // its record is gone, and the kernel's notes begin with a bracket
		return SectionUser, whole
	}
	return SectionNotes, whole
}
