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
	Content   any          `json:"content"` // a text or parts; null beside calls
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
		out.Messages = append(out.Messages, openaiMessage{Role: "system", Content: req.SystemPrompt})
	}
	out.Messages = append(out.Messages, d.messages(attached(req, d.Info().Abilities, &d.refused))...)
	return encode(out)
}

// messages converts a conversation. The answer of a tool is a text in this API: what is attached to those of a turn comes behind them all, as
// the user's.
func (d *OpenAIDriver) messages(s shown) (out []openaiMessage) {
	var behind []openaiPart
	flush := func() {
		if len(behind) > 0 {
			out = append(out, openaiMessage{Role: "user", Content: behind})
			behind = nil
		}
	}
	for _, m := range s.messages {
		if m.Role != rnixctx.RoleTool {
			flush()
		}
		msg, parts := d.message(m), openaiParts(s, m)
		switch {
		case len(parts) == 0:
		case m.Role == rnixctx.RoleTool:
			behind = append(append(behind, openaiPart{Type: "text", Text: "What the tool has attached to its answer above: " + rnixctx.Labels(m.Attachments)}), parts...)
		default:
			msg.Content = append([]openaiPart{{Type: "text", Text: msg.Content.(string)}}, parts...)
		}
		out = append(out, msg)
	}
	flush()
	return out
}

// openaiPart is a part of what a user says: a text, an image or a document.
type openaiPart struct {
	Type  string       `json:"type"`
	Text  string       `json:"text,omitempty"`
	Image *openaiImage `json:"image_url,omitempty"`
	File  *openaiFile  `json:"file,omitempty"`
}

type openaiImage struct {
	URL string `json:"url"`
}

type openaiFile struct {
	Name string `json:"filename"`
	Data string `json:"file_data"`
}

// openaiParts are the images and documents of a message.
func openaiParts(s shown, m rnixctx.Message) (out []openaiPart) {
	for i := range m.Attachments {
		if a := &m.Attachments[i]; a.Image() {
			out = append(out, openaiPart{Type: "image_url", Image: &openaiImage{s.url(a)}})
		} else {
			out = append(out, openaiPart{Type: "file", File: &openaiFile{a.Name, s.url(a)}})
		}
	}
	return out
}

func (d *OpenAIDriver) message(m rnixctx.Message) (out openaiMessage) {
	out.Role = string(m.Role)
	text := m.Content
	switch m.Role {
	case rnixctx.RoleTool:
		out.CallID = m.ToolCallID
		if text == "" {
			text = "(no output)" // some servers refuse an empty answer
		}
		if m.IsError {
			text = "Error: " + text // the API has no field for it
		}
	case rnixctx.RoleAssistant:
		for _, c := range m.ToolCalls {
			call := openaiCall{ID: c.ID, Type: "function"}
			call.Function.Name, call.Function.Arguments = callName(c.Name), string(inputObject(c))
			out.ToolCalls = append(out.ToolCalls, call)
		}
		if len(m.ToolCalls) > 0 {
			out.Reasoning = d.reasoning(m)
			if text == "" {
				return out
			}
		}
	default:
		out.Role = "user"
		if text == "" {
			text = "(empty)"
		}
	}
	out.Content = text
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
