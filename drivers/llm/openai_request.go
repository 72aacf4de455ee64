package llm

import (
	"encoding/json"

	rnixctx "rnix/context"
)

// openaiRequest is the request of the Chat Completions API.
type openaiRequest struct {
	Model         string          `json:"model"`
	MaxTokens     int             `json:"max_tokens,omitempty"`
	NewMaxTokens  int             `json:"max_completion_tokens,omitempty"`
	Effort        string          `json:"reasoning_effort,omitempty"`
	Stream        bool            `json:"stream"`
	StreamOptions *openaiOptions  `json:"stream_options,omitempty"`
	Tools         []openaiTool    `json:"tools,omitempty"`
	Messages      []openaiMessage `json:"messages"`
	CacheKey      string          `json:"prompt_cache_key,omitempty"`
}

type openaiOptions struct {
	Usage bool `json:"include_usage"`
}

type openaiTool struct {
	Type     string         `json:"type"`
	Function openaiFunction `json:"function"`
}

type openaiFunction struct {
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
}

type openaiMessage struct {
	Role      string       `json:"role"`
	Content   *string      `json:"content"` // null beside calls
	Reasoning *string      `json:"reasoning_content,omitempty"`
	ToolCalls []openaiCall `json:"tool_calls,omitempty"`
	CallID    string       `json:"tool_call_id,omitempty"`
}

type openaiCall struct {
	ID       string `json:"id"`
	Type     string `json:"type"`
	Function struct {
		Name      string `json:"name"`
		Arguments string `json:"arguments"`
	} `json:"function"`
}

// encode converts a request, in the way that the server is known to want.
func (d *OpenAIDriver) encode(req LLMRequest) ([]byte, error) {
	cfg := d.http.cfg
	out := openaiRequest{Model: req.Model, Stream: true, Effort: req.effort(cfg)}
	limit := cfg.MaxTokens
	if req.MaxTokens > 0 {
		limit = req.MaxTokens
	}
	if d.newTokens.Load() {
		out.NewMaxTokens = limit
	} else {
		out.MaxTokens = limit
	}
	if !d.noKey.Load() {
		out.CacheKey = req.Session
	}
	if !d.noUsage.Load() {
		out.StreamOptions = &openaiOptions{Usage: true}
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, openaiTool{"function", openaiFunction{t.Name, t.Description, schemaOf(t)}})
	}
	if req.SystemPrompt != "" {
		out.Messages = append(out.Messages, openaiMessage{Role: "system", Content: &req.SystemPrompt})
	}
	for _, m := range conversation(req) {
		out.Messages = append(out.Messages, d.message(m))
	}
	return encode(out)
}

func (d *OpenAIDriver) message(m rnixctx.Message) openaiMessage {
	out := openaiMessage{Role: string(m.Role), Content: &m.Content}
	switch m.Role {
	case rnixctx.RoleTool:
		out.CallID = m.ToolCallID
		if m.Content == "" {
			m.Content = "(no output)" // some servers refuse an empty answer
		}
		if m.IsError {
			m.Content = "Error: " + m.Content // the API has no field for it
		}
	case rnixctx.RoleAssistant:
		for _, c := range m.ToolCalls {
			call := openaiCall{ID: c.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = callName(c.Name), string(inputObject(c))
			out.ToolCalls = append(out.ToolCalls, call)
		}
		if len(m.ToolCalls) > 0 {
			if m.Content == "" {
				out.Content = nil
			}
			out.Reasoning = d.reasoning(m)
		}
	default:
		out.Role = "user"
		if m.Content == "" {
			m.Content = "(empty)"
		}
	}
	return out
}

// openaiReasoning is what a Block of this driver holds: reasoning that the server wants back in the
// message that has the calls it led to.
type openaiReasoning struct {
	Content string `json:"reasoning_content"`
}

func (d *OpenAIDriver) reasoning(m rnixctx.Message) *string {
	var text string
	any := d.reasons.Load()
	for _, b := range m.Reasoning {
		var r openaiReasoning
		if b.Provider == d.http.cfg.Name && json.Unmarshal(b.Data, &r) == nil && r.Content != "" {
			text, any = text+r.Content, true
		}
	}
	if !any {
		return nil
	}
	return &text
}
