package llmtest

import (
	"encoding/json"
	"errors"
)

// messagesAPI is the Messages API of Anthropic.
type messagesAPI struct{}

// looseBlocks is a content that is one text or a list of blocks.
type looseBlocks []looseBlock

type looseBlock struct {
	Type    string          `json:"type"`
	Text    string          `json:"text"`
	ID      string          `json:"id"`
	Name    string          `json:"name"`
	Input   json.RawMessage `json:"input"`
	CallID  string          `json:"tool_use_id"`
	Content looseBlocks     `json:"content"`
	IsError bool            `json:"is_error"`
}

// UnmarshalJSON reads both forms.
func (b *looseBlocks) UnmarshalJSON(raw []byte) error {
	var text string
	if json.Unmarshal(raw, &text) == nil {
		*b = looseBlocks{{Type: "text", Text: text}}
		return nil
	}
	return json.Unmarshal(raw, (*[]looseBlock)(b))
}

func (b looseBlocks) text() string {
	all := ""
	for _, x := range b {
		if x.Type == "text" || x.Type == "input_text" || x.Type == "output_text" {
			all += x.Text
		}
	}
	return all
}

func (messagesAPI) parse(body []byte, into *Request) error {
	var in struct {
		Model     string      `json:"model"`
		MaxTokens int         `json:"max_tokens"`
		Stream    bool        `json:"stream"`
		System    looseBlocks `json:"system"`
		Messages  []struct {
			Role    string      `json:"role"`
			Content looseBlocks `json:"content"`
		} `json:"messages"`
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if in.MaxTokens <= 0 || in.Model == "" {
		return errors.New("model and max_tokens are required")
	}
	into.Model, into.Stream, into.System = in.Model, in.Stream, in.System.text()
	for _, t := range in.Tools {
		into.Tools = append(into.Tools, t.Name)
	}
	for _, m := range in.Messages {
		out := Message{Role: m.Role, Text: m.Content.text()}
		for _, b := range m.Content {
			switch b.Type {
			case "tool_use":
				out.Calls = append(out.Calls, ToolCall{ID: b.ID, Name: b.Name, Input: string(b.Input)})
			case "tool_result":
				out.Results = append(out.Results, Result{b.CallID, b.Content.text(), b.IsError})
			}
		}
		into.Messages = append(into.Messages, out)
	}
	return into.legalMessages()
}

// legalMessages refuses what the real API refuses: an answer to a tool call must stand in the message
// behind it, and every call needs one.
func (r *Request) legalMessages() error {
	if len(r.Messages) == 0 || r.Messages[0].Role != "user" {
		return errors.New("messages: first message must use the user role")
	}
	open := map[string]bool{}
	for _, m := range r.Messages {
		if m.Role == "system" {
			continue
		}
		for _, res := range m.Results {
			if !open[res.ID] {
				return errors.New("messages: unexpected tool_use_id in tool_result: " + res.ID)
			}
			delete(open, res.ID)
		}
		if len(open) > 0 {
			return errors.New("messages: tool_use ids were found without tool_result blocks immediately after")
		}
		for _, c := range m.Calls {
			if open[c.ID] {
				return errors.New("messages: tool_use ids must be unique: " + c.ID)
			}
			open[c.ID] = true
			if in := c.Input; in == "" || in[0] != '{' {
				return errors.New("messages: tool_use.input: input should be an object")
			}
		}
	}
	return nil
}

func (messagesAPI) stop(r Reply) string {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(r.ToolCalls) > 0:
		return "tool_use"
	}
	return "end_turn"
}

func (messagesAPI) usage(u Usage) map[string]int {
	return map[string]int{"input_tokens": u.Input, "output_tokens": u.Output, "cache_read_input_tokens": u.CacheRead, "cache_creation_input_tokens": u.CacheWrite}
}

func (d messagesAPI) whole(id string, _ Request, r Reply, u Usage) any {
	content := []any{}
	if r.Reasoning != "" {
		content = append(content, map[string]any{"type": "thinking", "thinking": r.Reasoning, "signature": "fake"})
	}
	if r.Text != "" || len(r.ToolCalls) == 0 {
		content = append(content, map[string]any{"type": "text", "text": r.Text})
	}
	for _, c := range r.ToolCalls {
		content = append(content, map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": asJSON(c.Input)})
	}
	m := map[string]any{"id": id, "type": "message", "role": "assistant", "model": r.Model, "content": content, "stop_reason": d.stop(r), "stop_sequence": nil}
	if !r.NoUsage {
		m["usage"] = d.usage(u)
	}
	return m
}

// asJSON is the text as JSON if it is, else as a string.
func asJSON(text string) any {
	if json.Valid([]byte(text)) {
		return json.RawMessage(text)
	}
	return text
}

func (d messagesAPI) stream(out *events, id string, _ Request, r Reply, u Usage, text func(func(string) bool) bool) bool {
	message := map[string]any{"id": id, "type": "message", "role": "assistant", "model": r.Model, "content": []any{}, "stop_reason": nil, "stop_sequence": nil}
	delta := map[string]any{"type": "message_delta", "delta": map[string]any{"stop_reason": d.stop(r), "stop_sequence": nil}}
	if !r.NoUsage {
		first := u
		first.Output = 1
		message["usage"], delta["usage"] = d.usage(first), map[string]int{"output_tokens": u.Output}
	}
	index := 0
	block := func(start map[string]any, deltas func(func(map[string]any) bool) bool) bool {
		ok := out.send("content_block_start", map[string]any{"type": "content_block_start", "index": index, "content_block": start}) &&
			deltas(func(delta map[string]any) bool {
				return out.send("content_block_delta", map[string]any{"type": "content_block_delta", "index": index, "delta": delta})
			}) && out.send("content_block_stop", map[string]any{"type": "content_block_stop", "index": index})
		index++
		return ok
	}
	if !out.send("message_start", map[string]any{"type": "message_start", "message": message}) || !out.send("ping", map[string]string{"type": "ping"}) {
		return false
	}
	if r.Reasoning != "" && !block(map[string]any{"type": "thinking", "thinking": "", "signature": ""}, func(send func(map[string]any) bool) bool {
		return send(map[string]any{"type": "thinking_delta", "thinking": r.Reasoning}) && send(map[string]any{"type": "signature_delta", "signature": "fake"})
	}) {
		return false
	}
	if !block(map[string]any{"type": "text", "text": ""}, func(send func(map[string]any) bool) bool {
		return text(func(p string) bool { return send(map[string]any{"type": "text_delta", "text": p}) })
	}) {
		return false
	}
	for _, c := range r.ToolCalls {
		if !block(map[string]any{"type": "tool_use", "id": c.ID, "name": c.Name, "input": map[string]any{}}, func(send func(map[string]any) bool) bool {
			for _, p := range pieces(c.Input, 3) {
				if !send(map[string]any{"type": "input_json_delta", "partial_json": p}) {
					return false
				}
			}
			return true
		}) {
			return false
		}
	}
	return out.send("message_delta", delta) && out.send("message_stop", map[string]string{"type": "message_stop"})
}
