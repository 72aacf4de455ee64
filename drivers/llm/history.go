package llm

import (
	"strings"

	rnixctx "rnix/context"
)

// conversation returns the messages of a request in an order that every provider accepts: the user
// first, each call answered exactly once and at once, no system message in between, nobody silent.
// What is legal already comes back as it is. What was missing is said in words, never made up.
func conversation(req LLMRequest) []rnixctx.Message {
	ms := req.Messages
	if len(ms) == 0 {
		return []rnixctx.Message{{Role: rnixctx.RoleUser, Content: req.Intent}}
	}
	if rnixctx.Legal(ms) == nil && !anySilent(ms) {
		return ms
	}
	var h history
	for _, m := range ms {
		h.add(m)
	}
	h.answerOpen()
	if len(h.out) == 0 {
		h.out = append(h.out, rnixctx.Message{Role: rnixctx.RoleUser, Content: "(nothing was said)"})
	}
	return h.out
}

// silent reports whether an assistant's message says nothing at all.
func silent(m rnixctx.Message) bool {
	return m.Role == rnixctx.RoleAssistant && len(m.ToolCalls) == 0 && strings.TrimSpace(m.Content) == ""
}

func anySilent(ms []rnixctx.Message) bool {
	for _, m := range ms {
		if silent(m) {
			return true
		}
	}
	return false
}

// history puts a conversation in order.
type history struct {
	out  []rnixctx.Message
	open []rnixctx.ToolCall // calls that wait for their answer
}

func (h *history) add(m rnixctx.Message) {
	if m.Role == rnixctx.RoleTool {
		for i, c := range h.open {
			if c.ID == m.ToolCallID {
				h.open = append(h.open[:i:i], h.open[i+1:]...)
				h.out = append(h.out, m)
				return
			}
		}
		h.add(rnixctx.Message{Role: rnixctx.RoleUser, Content: "Answer of a tool that was not called here:\n" + m.Content})
		return
	}
	h.answerOpen()
	if m.Role != rnixctx.RoleAssistant {
		m.Role, m.ToolCalls = rnixctx.RoleUser, nil
		h.out = append(h.out, m)
		return
	}
	if silent(m) {
		return
	}
	if len(h.out) == 0 {
		h.out = append(h.out, rnixctx.Message{Role: rnixctx.RoleUser, Content: "(the beginning of the conversation is not kept)"})
	}
	m.ToolCalls = distinct(m.ToolCalls)
	h.out = append(h.out, m)
	h.open = append(h.open, m.ToolCalls...)
}

// answerOpen answers the calls that nobody has answered.
func (h *history) answerOpen() {
	for _, c := range h.open {
		h.out = append(h.out, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: c.ID, IsError: true,
			Content: "no answer was recorded; whether the tool ran is not known"})
	}
	h.open = nil
}

// distinct drops calls without an id and calls whose id stands before them.
func distinct(calls []rnixctx.ToolCall) []rnixctx.ToolCall {
	seen := map[string]bool{"": true}
	var out []rnixctx.ToolCall
	for _, c := range calls {
		if !seen[c.ID] {
			seen[c.ID] = true
			out = append(out, c)
		}
	}
	return out
}
