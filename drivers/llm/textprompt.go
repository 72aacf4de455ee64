package llm

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	rnixctx "rnix/context"
)

// TextToolPrompt is what a text-only model is told about its tools: the form of an answer, and each
// tool with its input. It depends on nothing but tools and keeps their order, so that it is the same
// at every step. Without tools it is empty.
func TextToolPrompt(tools []ToolSpec) string {
	if len(tools) == 0 {
		return ""
	}
	own, devices := divide(tools)
	var b strings.Builder
	b.WriteString("# How you act\n\nAnswer with exactly one JSON object and nothing else: no text before or behind it, no code fence. " +
		"Its \"action\" says what is done; you are then told what came of it and answer again, until the work is finished. The forms are:\n\n")
	if len(devices) > 0 {
		b.WriteString(`{"action":"tool_call","tool":"NAME","input":{...}} runs one tool.` + "\n" +
			`{"action":"tool_calls","calls":[{"tool":"NAME","input":{...}},{"tool":"NAME","input":{...}}]} runs several tools that do not need each other's results.` + "\n")
	}
	for _, t := range own {
		fmt.Fprintf(&b, "{\"action\":%q, FIELDS}: %s Its fields: %s\n", t.Name, t.Description, compactJSON(t.Schema))
	}
	if len(own) == 0 || own[0].Name != actComplete {
		b.WriteString(`{"action":"text","content":"..."} is your answer in words; it ends the work.` + "\n")
	}
	b.WriteString(`Each form may carry "thought": one sentence about why, for the people who watch.` + "\n")
	if len(devices) > 0 {
		b.WriteString("\n# Tools\n\nThese are all the tools there are. \"input\" must match the schema of the tool.\n")
	}
	for _, t := range devices {
		fmt.Fprintf(&b, "\n## %s\n%s\nInput: %s\n", t.Name, strings.TrimSpace(t.Description), compactJSON(t.Schema))
	}
	return b.String()
}

// ActionSchema is the JSON Schema of an answer, for models that can be held to one. It is one flat
// object on purpose: alternatives at the top are refused by some providers. Without tools it is nil.
func ActionSchema(tools []ToolSpec) json.RawMessage {
	if len(tools) == 0 {
		return nil
	}
	type schema = map[string]any
	own, devices := divide(tools)
	props := schema{
		"thought": schema{"type": "string", "description": "one sentence about why"},
	}
	var actions []string
	if len(devices) > 0 {
		var names []string
		for _, t := range devices {
			names = append(names, t.Name)
		}
		actions = append(actions, actToolCall, actToolCalls)
		tool := schema{"type": "string", "enum": names}
		input := schema{"type": "object", "description": "the input of the tool"}
		props["tool"], props["input"] = tool, input
		props["calls"] = schema{"type": "array", "description": "for tool_calls", "items": schema{
			"type": "object", "required": []string{"tool", "input"},
			"properties": schema{"tool": tool, "input": input},
		}}
	}
	complete := false
	for _, t := range own {
		actions = append(actions, t.Name)
		complete = complete || t.Name == actComplete
		var s struct {
			Properties map[string]json.RawMessage `json:"properties"`
		}
		if json.Unmarshal(t.Schema, &s) != nil {
			continue
		}
		for name, p := range s.Properties {
			if _, taken := props[name]; !taken && name != "action" {
				props[name] = p
			}
		}
	}
	if !complete {
		actions = append(actions, actText)
		props["content"] = schema{"type": "string", "description": "for text: the answer"}
	}
	props["action"] = schema{"type": "string", "enum": actions}
	out, err := json.Marshal(schema{"type": "object", "required": []string{"action"}, "properties": props})
	if err != nil {
		return nil // a tool's schema is not JSON: without a schema the answer is still parsed
	}
	return out
}

// divide separates the kernel's own actions, complete first, from the tools of devices.
func divide(tools []ToolSpec) (own, devices []ToolSpec) {
	for _, t := range tools {
		switch {
		case t.Name == actComplete:
			own = slices.Insert(own, 0, t)
		case slices.Contains(ownActions, t.Name):
			own = append(own, t)
		default:
			devices = append(devices, t)
		}
	}
	return own, devices
}

func compactJSON(schema json.RawMessage) string {
	var b bytes.Buffer
	if json.Compact(&b, schema) != nil {
		return string(schema)
	}
	return b.String()
}

// actionText writes calls the way ParseTextAction reads them: so a model sees what it answered.
func actionText(calls []rnixctx.ToolCall) string {
	type call struct {
		Tool  string          `json:"tool"`
		Input json.RawMessage `json:"input"`
	}
	var list []call
	for _, c := range calls {
		if !json.Valid(c.Input) {
			c.Input = json.RawMessage("{}")
		}
		list = append(list, call{c.Name, c.Input})
	}
	var v any = struct {
		Action string `json:"action"`
		Calls  []call `json:"calls"`
	}{actToolCalls, list}
	if len(list) == 1 {
		v = struct {
			Action string `json:"action"`
			call
		}{actToolCall, list[0]}
	}
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // strings and valid raw messages
	return strings.TrimSpace(b.String())
}

// numberCalls gives each call an id that is not used in the conversation yet. It depends on the
// conversation only, so the same answer gets the same ids when a step is run again.
func numberCalls(calls []rnixctx.ToolCall, before []rnixctx.Message) {
	n := 0
	for i := range before {
		for _, c := range before[i].ToolCalls {
			var k int
			if _, err := fmt.Sscanf(c.ID, "call-%d", &k); err == nil && k < 1<<30 {
				n = max(n, k)
			}
		}
	}
	for i := range calls {
		n++
		calls[i].ID = fmt.Sprintf("call-%d", n)
	}
}
