package llmtest

import (
	"encoding/json"
	"errors"
)

// chatAPI is the Chat Completions API.
type chatAPI struct{}

type chatCall struct {
	Index    *int   `json:"index,omitempty"`
	ID       string `json:"id,omitempty"`
	Type     string `json:"type,omitempty"`
	Function struct {
		Name      string `json:"name,omitempty"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

func (chatAPI) parse(body []byte, into *Request) error {
	var in struct {
		Model    string `json:"model"`
		Stream   bool   `json:"stream"`
		Messages []struct {
			Role    string      `json:"role"`
			Content looseBlocks `json:"content"`
			Calls   []chatCall  `json:"tool_calls"`
			CallID  string      `json:"tool_call_id"`
		} `json:"messages"`
		Tools []struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(body, &in); err != nil {
		return err
	}
	if in.Model == "" || len(in.Messages) == 0 {
		return errors.New("you must provide a model and messages")
	}
	into.Model, into.Stream = in.Model, in.Stream
	for _, t := range in.Tools {
		into.Tools = append(into.Tools, t.Function.Name)
	}
	open := map[string]bool{}
	for _, m := range in.Messages {
		out := Message{Role: m.Role, Text: m.Content.text()}
		switch {
		case m.Role == "tool" && !open[m.CallID]:
			return errors.New("messages with role 'tool' must be a response to a preceding message with 'tool_calls'")
		case m.Role == "tool":
			delete(open, m.CallID)
			out.Results, out.Text = []Result{{ID: m.CallID, Text: out.Text}}, ""
		case len(open) > 0:
			return errors.New("an assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'")
		case m.Role == "system" || m.Role == "developer":
			into.System += out.Text
			continue
		}
		for _, c := range m.Calls {
			open[c.ID] = true
			out.Calls = append(out.Calls, ToolCall{ID: c.ID, Name: c.Function.Name, Input: c.Function.Arguments})
		}
		into.Messages = append(into.Messages, out)
	}
	return nil
}

func (chatAPI) stop(r Reply) string {
	switch {
	case r.Stop != "":
		return r.Stop
	case len(r.ToolCalls) > 0:
		return "tool_calls"
	}
	return "stop"
}

func (chatAPI) usage(u Usage) map[string]any {
	in := u.Input + u.CacheRead
	return map[string]any{"prompt_tokens": in, "completion_tokens": u.Output, "total_tokens": in + u.Output,
		"prompt_tokens_details": map[string]int{"cached_tokens": u.CacheRead}}
}

func (chatAPI) calls(r Reply) []chatCall {
	var out []chatCall
	for i, c := range r.ToolCalls {
		call := chatCall{Index: &i, ID: c.ID, Type: "function"}
		call.Function.Name, call.Function.Arguments = c.Name, c.Input
		out = append(out, call)
	}
	return out
}

func (d chatAPI) whole(id string, _ Request, r Reply, u Usage) any {
	message := map[string]any{"role": "assistant", "content": r.Text}
	if r.Reasoning != "" {
		message["reasoning_content"] = r.Reasoning
	}
	if len(r.ToolCalls) > 0 {
		message["tool_calls"] = d.calls(r)
	}
	out := map[string]any{"id": id, "object": "chat.completion", "model": r.Model,
		"choices": []any{map[string]any{"index": 0, "message": message, "finish_reason": d.stop(r)}}}
	if !r.NoUsage {
		out["usage"] = d.usage(u)
	}
	return out
}

func (d chatAPI) stream(out *events, id string, req Request, r Reply, u Usage, text func(func(string) bool) bool) bool {
	chunk := func(delta any, finish any) bool {
		return out.send("", map[string]any{"id": id, "object": "chat.completion.chunk", "model": r.Model,
			"choices": []any{map[string]any{"index": 0, "delta": delta, "finish_reason": finish}}})
	}
	if !chunk(map[string]string{"role": "assistant", "content": ""}, nil) {
		return false
	}
	if r.Reasoning != "" && !chunk(map[string]string{"reasoning_content": r.Reasoning}, nil) {
		return false
	}
	if !text(func(p string) bool { return chunk(map[string]string{"content": p}, nil) }) {
		return false
	}
	for _, c := range d.calls(r) {
		args := c.Function.Arguments
		c.Function.Arguments = ""
		if !chunk(map[string]any{"tool_calls": []chatCall{c}}, nil) {
			return false
		}
		for _, p := range pieces(args, 3) {
			more := chatCall{Index: c.Index}
			more.Function.Arguments = p
			if !chunk(map[string]any{"tool_calls": []chatCall{more}}, nil) {
				return false
			}
		}
	}
	if !chunk(map[string]string{}, d.stop(r)) {
		return false
	}
	var options struct {
		StreamOptions struct {
			Usage bool `json:"include_usage"`
		} `json:"stream_options"`
	}
	_ = json.Unmarshal(req.Body, &options) // it was read before
	if options.StreamOptions.Usage && !r.NoUsage &&
		!out.send("", map[string]any{"id": id, "object": "chat.completion.chunk", "model": r.Model, "choices": []any{}, "usage": d.usage(u)}) {
		return false
	}
	return out.raw("", "[DONE]")
}
