package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	rnixctx "rnix/context"
	"rnix/types"
)

// makeCall builds a tool call from what a provider streamed. Arguments that are not one JSON object
// are kept as a JSON string of what the model wrote, with a ParseError; none at all mean {}.
func makeCall(id, name, args string) rnixctx.ToolCall {
	c := rnixctx.ToolCall{ID: id, Name: name, Input: json.RawMessage("{}")}
	if raw := strings.TrimSpace(args); raw != "" {
		c.Input, c.ParseError = arguments(raw)
	}
	if name == "" && c.ParseError == "" {
		c.ParseError = "the call names no tool"
	}
	return c
}

func arguments(raw string) (json.RawMessage, string) {
	var object map[string]json.RawMessage
	err := json.Unmarshal([]byte(raw), &object)
	if err == nil && object != nil {
		return json.RawMessage(strings.ToValidUTF8(raw, "\ufffd")), ""
	}
	problem := "the arguments are not a JSON object"
	if err != nil && raw[0] == '{' {
		problem += ": " + err.Error()
	}
	text, _ := json.Marshal(raw) // a string always encodes
	return text, problem
}

// identify gives every call an id of its own, within the answer and the conversation: some servers
// send none, or count from 0 in each answer.
func identify(calls []rnixctx.ToolCall, conversation []rnixctx.Message) {
	if len(calls) == 0 {
		return
	}
	used := map[string]bool{"": true}
	for _, m := range conversation {
		for _, c := range m.ToolCalls {
			used[c.ID] = true
		}
	}
	for i := range calls {
		for used[calls[i].ID] || len(calls[i].ID) > 256 {
			calls[i].ID = "call_" + strings.ReplaceAll(types.NewUUID().String(), "-", "")
		}
		used[calls[i].ID] = true
	}
}

// stopOf says why an answer ended, in our words, from its calls and the provider's word in ours.
func stopOf(reason string, calls []rnixctx.ToolCall) string {
	switch {
	case len(calls) > 0 && (reason == "" || reason == "end_turn"):
		return "tool_use"
	case len(calls) == 0 && (reason == "" || reason == "tool_use"):
		return "end_turn"
	}
	return reason
}

// inputObject returns a call's input as providers take it back: always an object.
func inputObject(c rnixctx.ToolCall) json.RawMessage {
	if in := bytes.TrimSpace(c.Input); len(in) > 0 && in[0] == '{' && json.Valid(in) {
		return in
	}
	raw := string(c.Input)
	var text string
	if json.Unmarshal(c.Input, &text) == nil {
		raw = text
	}
	if raw == "" {
		return json.RawMessage("{}")
	}
	out, _ := json.Marshal(map[string]string{"unreadable_arguments": raw}) // strings always encode
	return out
}

// callName returns a call's name as providers take it back: [a-zA-Z0-9_-]{1,64}.
func callName(name string) string {
	clean := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '_', r == '-':
			return r
		}
		return '_'
	}, name)
	if clean == "" {
		return "unnamed"
	}
	return clean[:min(len(clean), 64)]
}
