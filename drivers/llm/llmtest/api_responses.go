package llmtest

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
)

// responsesAPI is the Responses API of OpenAI.
type responsesAPI struct{}

func (responsesAPI) parse(body []byte, into *Request) error {
	var in struct {
		Model        string         `json:"model"`
		Stream       bool           `json:"stream"`
		Instructions string         `json:"instructions"`
		Input        responsesInput `json:"input"`
		Tools        toolList       `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if in.Model == "" || len(in.Input) == 0 {
		return errors.New("you must provide a model and input")
	}
	into.Model, into.Stream, into.System = in.Model, in.Stream, in.Instructions
	into.Tools = in.Tools.names()
	open := map[string]bool{}
	for n, i := range in.Input {
		switch i.Type {
		case "reasoning":
			if next := in.Input[n:]; len(next) == 1 || next[1].Type != "reasoning" && next[1].Type != "function_call" && next[1].Type != "custom_tool_call" && next[1].Role != "assistant" {
				return errors.New("item '" + i.ID + "' of type 'reasoning' was provided without its required following item")
			}
		case "", "message":
			into.Messages = append(into.Messages, Message{Role: i.Role, Text: i.Content.text()})
		case "additional_tools":
			into.Tools = append(into.Tools, i.Tools.names()...)
		case "function_call", "custom_tool_call":
			open[i.CallID] = true
			into.Messages = append(into.Messages, Message{Role: "assistant", Calls: []ToolCall{{ID: i.CallID, Namespace: i.Namespace, Name: i.Name, Input: i.Arguments + i.Input, Custom: i.Type != "function_call"}}})
		case "function_call_output", "custom_tool_call_output":
			if !open[i.CallID] {
				return errors.New("no tool call found for function call output with call_id " + i.CallID)
			}
			into.Messages = append(into.Messages, Message{Role: "tool", Results: []Result{{ID: i.CallID, Text: i.Output.text()}}})
		}
	}
	return nil
}

// responsesInput is what was said so far, as one text or a list of items.
type responsesInput []responsesItem

type responsesItem struct {
	Type      string      `json:"type"`
	ID        string      `json:"id,omitempty"`
	Status    string      `json:"status,omitempty"`
	Role      string      `json:"role,omitempty"`
	Content   looseBlocks `json:"content,omitempty"`
	CallID    string      `json:"call_id,omitempty"`
	Namespace string      `json:"namespace,omitempty"`
	Name      string      `json:"name,omitempty"`
	Arguments string      `json:"arguments,omitempty"`
	Input     string      `json:"input,omitempty"` // of a custom tool
	Output    looseBlocks `json:"output,omitempty"`
	Tools     toolList    `json:"tools,omitempty"`
}

// responsesThought is an item of reasoning, which comes back encrypted.
type responsesThought struct {
	Type      string `json:"type"`
	ID        string `json:"id"`
	Summary   []any  `json:"summary"`
	Encrypted string `json:"encrypted_content"`
}

// toolList is tools, some of them in namespaces.
type toolList []struct {
	Type  string `json:"type"`
	Name  string `json:"name"`
	Tools []struct {
		Name string `json:"name"`
	} `json:"tools"` // of a namespace
}

func (l toolList) names() (out []string) {
	for _, t := range l {
		if t.Name == "" {
			t.Name = t.Type
		}
		for _, inner := range t.Tools {
			out = append(out, t.Name+"/"+inner.Name)
		}
		if len(t.Tools) == 0 {
			out = append(out, t.Name)
		}
	}
	return out
}

// UnmarshalJSON reads both forms.
func (i *responsesInput) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*i = responsesInput{{Role: "user", Content: looseBlocks{{Type: "text", Text: text}}}}
		return nil
	}
	return json.Unmarshal(raw, (*[]responsesItem)(i))
}

func (responsesAPI) usage(u Usage) map[string]any {
	in := u.Input + u.CacheRead
	return map[string]any{"input_tokens": in, "output_tokens": u.Output, "total_tokens": in + u.Output,
		"input_tokens_details": map[string]int{"cached_tokens": u.CacheRead}, "output_tokens_details": map[string]int{"reasoning_tokens": 0}}
}

func (d responsesAPI) response(id, status string, r Reply, u Usage, output []any) map[string]any {
	out := map[string]any{"id": id, "object": "response", "model": r.Model, "status": status, "output": output}
	if status == "completed" && !r.NoUsage {
		out["usage"] = d.usage(u)
	}
	return out
}

// items are what a reply says: its text, if it has any, and its calls.
func (responsesAPI) items(id string, r Reply) (out []any) {
	if r.Reasoning != "" {
		out = append(out, responsesThought{"reasoning", id + "_r", []any{map[string]string{"type": "summary_text", "text": r.Reasoning}}, "sealed:" + r.Reasoning})
	}
	if r.Text != "" || len(r.ToolCalls) == 0 {
		out = append(out, map[string]any{"type": "message", "id": id + "_m", "role": "assistant", "status": "completed",
			"content": []any{map[string]any{"type": "output_text", "text": r.Text, "annotations": []any{}}}})
	}
	for i, c := range r.ToolCalls {
		item := responsesItem{Type: "function_call", ID: fmt.Sprintf("%s_f%d", id, i), Status: "completed", CallID: c.ID, Namespace: c.Namespace, Name: c.Name, Arguments: c.Input}
		if c.Custom {
			item.Type, item.Arguments, item.Input = "custom_tool_call", "", c.Input
		}
		out = append(out, item)
	}
	return out
}

func (d responsesAPI) whole(id string, _ Request, r Reply, u Usage) any {
	return d.response(id, "completed", r, u, d.items(id, r))
}

func (d responsesAPI) stream(out *events, id string, _ Request, r Reply, u Usage, text func(func(string) bool) bool) bool {
	send := func(kind string, v map[string]any) bool {
		v["type"] = kind
		return out.send(kind, v)
	}
	if !send("response.created", map[string]any{"response": d.response(id, "in_progress", r, u, []any{})}) {
		return false
	}
	items := d.items(id, r)
	if !slices.ContainsFunc(items, func(i any) bool { _, message := i.(map[string]any); return message }) {
		if !text(func(string) bool { return true }) { // no text, but what follows one
			return false
		}
	}
	for i, item := range items {
		if _, message := item.(map[string]any); message {
			start := map[string]any{"type": "message", "id": id + "_m", "role": "assistant", "status": "in_progress", "content": []any{}}
			if !send("response.output_item.added", map[string]any{"output_index": i, "item": start}) || !text(func(p string) bool {
				return send("response.output_text.delta", map[string]any{"output_index": i, "content_index": 0, "item_id": id + "_m", "delta": p})
			}) {
				return false
			}
		} else if !send("response.output_item.added", map[string]any{"output_index": i, "item": item}) {
			return false
		} else if t, ok := item.(responsesThought); ok && !send("response.reasoning_summary_text.delta", map[string]any{"output_index": i, "summary_index": 0, "item_id": t.ID, "delta": r.Reasoning}) {
			return false
		}
		if !send("response.output_item.done", map[string]any{"output_index": i, "item": item}) {
			return false
		}
	}
	if r.Stop != "" { // why it is not complete
		whole := d.response(id, "completed", r, u, items)
		whole["status"], whole["incomplete_details"] = "incomplete", map[string]string{"reason": r.Stop}
		return send("response.incomplete", map[string]any{"response": whole})
	}
	return send("response.completed", map[string]any{"response": d.response(id, "completed", r, u, items)})
}
