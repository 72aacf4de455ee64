package llm

import (
	"encoding/json"
	"fmt"
	"hash/fnv"
	"strings"

	rnixctx "rnix/context"

	"rnix/internal/pattern"
)

// The request of the Messages API. The order of the fields is that of the cache: tools, system,
// messages.
type anthropicRequest struct {
	Model     string             `json:"model"`
	MaxTokens int                `json:"max_tokens"`
	Stream    bool               `json:"stream"`
	Thinking  *anthropicThinking `json:"thinking,omitempty"`
	Output    *anthropicOutput   `json:"output_config,omitempty"`
	Tools     []anthropicTool    `json:"tools,omitempty"`
	System    []anthropicBlock   `json:"system,omitempty"`
	Messages  []anthropicMessage `json:"messages"`
}

type anthropicThinking struct {
	Type   string `json:"type"`
	Budget int    `json:"budget_tokens,omitempty"`
}

type anthropicOutput struct {
	Effort string `json:"effort"`
}

type anthropicTool struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
	Cache       *cacheMark      `json:"cache_control,omitempty"`
}

type anthropicMessage struct {
	Role    string           `json:"role"`
	Content []anthropicBlock `json:"content"`
}

// anthropicBlock is a block of any type; raw, if set, is the whole block as it came.
type anthropicBlock struct {
	raw json.RawMessage

	Type    string          `json:"type"`
	Text    string          `json:"text,omitempty"`
	ID      string          `json:"id,omitempty"`
	Name    string          `json:"name,omitempty"`
	Input   json.RawMessage `json:"input,omitempty"`
	CallID  string          `json:"tool_use_id,omitempty"`
	Content any             `json:"content,omitempty"` // a text, or blocks
	Source  *anthropicData  `json:"source,omitempty"`
	Title   string          `json:"title,omitempty"`
	IsError bool            `json:"is_error,omitempty"`
	Cache   *cacheMark      `json:"cache_control,omitempty"`
}

// anthropicData is an image or a document.
type anthropicData struct {
	Type  string `json:"type"`
	Media string `json:"media_type"`
	Data  string `json:"data"`
}

// MarshalJSON writes the block, or what came in its place.
func (b anthropicBlock) MarshalJSON() ([]byte, error) {
	if b.raw != nil {
		return b.raw, nil
	}
	type plain anthropicBlock
	return encode(plain(b))
}

// cacheMark asks the provider to keep everything up to here for the next request.
type cacheMark struct {
	Type string `json:"type"`
}

var ephemeral = &cacheMark{"ephemeral"}

// encode converts a request. Marks for the prompt cache stand at the end of the tools, of the system
// prompt, of the last message, and of the user's message before that, which the last request marked.
func (d *AnthropicDriver) encode(req LLMRequest) ([]byte, error) {
	cfg := d.http.cfg
	out := anthropicRequest{Model: req.Model, MaxTokens: cfg.MaxTokens, Stream: true}
	if req.MaxTokens > 0 {
		out.MaxTokens = req.MaxTokens
	}
	switch {
	case cfg.Thinking > 0:
		out.Thinking = &anthropicThinking{Type: "enabled", Budget: cfg.Thinking}
		out.MaxTokens += cfg.Thinking // the provider counts both against one bound
	case cfg.Thinking < 0:
		out.Thinking = &anthropicThinking{Type: "adaptive"}
	}
	if effort := req.effort(cfg); effort != "" {
		out.Output = &anthropicOutput{effort}
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, anthropicTool{Name: t.Name, Description: t.Description, Schema: schemaOf(t)})
	}
	if n := len(out.Tools); n > 0 {
		out.Tools[n-1].Cache = ephemeral
	}
	if strings.TrimSpace(req.SystemPrompt) != "" {
		out.System = []anthropicBlock{{Type: "text", Text: req.SystemPrompt, Cache: ephemeral}}
	}
	out.Messages = anthropicMessages(attached(req, d.Info().Abilities, &d.refused), cfg.Name)
	marks := 2
	for i := len(out.Messages) - 1; i >= 0 && marks > 0; i-- {
		if m := out.Messages[i]; m.Role == "user" {
			m.Content[len(m.Content)-1].Cache = ephemeral
			marks--
		}
	}
	return encode(out)
}

// effort is how hard the model shall think, "" = as it likes.
func (r *LLMRequest) effort(cfg HTTPConfig) string {
	if r.Effort != "" {
		return r.Effort
	}
	return cfg.Effort
}

// schemaOf returns a tool's schema; that of no arguments if it has none.
func schemaOf(t ToolSpec) json.RawMessage {
	if len(t.Schema) == 0 {
		return json.RawMessage(`{"type":"object","properties":{}}`)
	}
	return t.Schema
}

// anthropicMessages converts a conversation that is in order. Neighbours of one role become one
// message, answers to calls before anything else in it; the last message is always the user's.
func anthropicMessages(s shown, provider string) []anthropicMessage {
	var out []anthropicMessage
	add := func(role string, blocks ...anthropicBlock) {
		if n := len(out); n > 0 && out[n-1].Role == role {
			out[n-1].Content = append(out[n-1].Content, blocks...)
		} else if len(blocks) > 0 {
			out = append(out, anthropicMessage{role, blocks})
		}
	}
	for _, m := range s.messages {
		switch m.Role {
		case rnixctx.RoleAssistant:
			add("assistant", anthropicSaid(m, provider)...)
		case rnixctx.RoleTool:
			add("user", anthropicBlock{Type: "tool_result", CallID: anthropicID(m.ToolCallID), Content: anthropicResult(s, m), IsError: m.IsError})
		default:
			text := m.Content
			if strings.TrimSpace(text) == "" {
				text = "(empty)"
			}
			add("user", append(anthropicShown(s, m), anthropicBlock{Type: "text", Text: text})...)
		}
	}
	if out[len(out)-1].Role == "assistant" {
		add("user", anthropicBlock{Type: "text", Text: "Continue."})
	}
	return out
}

// anthropicResult is what a tool has answered: its text, and behind it what is attached to that.
func anthropicResult(s shown, m rnixctx.Message) any {
	if len(m.Attachments) == 0 {
		if m.Content == "" {
			return nil
		}
		return m.Content
	}
	return append([]anthropicBlock{{Type: "text", Text: m.Content}}, anthropicShown(s, m)...)
}

// anthropicShown are the images and documents of a message.
func anthropicShown(s shown, m rnixctx.Message) (out []anthropicBlock) {
	for i := range m.Attachments {
		a := &m.Attachments[i]
		b := anthropicBlock{Type: "image", Source: &anthropicData{"base64", a.Media, s.data[a.SHA256]}}
		if !a.Image() {
			b.Type, b.Title = "document", a.Name
		}
		out = append(out, b)
	}
	return out
}

// anthropicSaid converts what the model said: its own thinking first and unchanged, then text, then calls.
func anthropicSaid(m rnixctx.Message, provider string) []anthropicBlock {
	var out []anthropicBlock
	for _, b := range m.Reasoning {
		if b.Provider == provider && json.Valid(b.Data) {
			out = append(out, anthropicBlock{raw: b.Data})
		}
	}
	if strings.TrimSpace(m.Content) != "" {
		out = append(out, anthropicBlock{Type: "text", Text: m.Content})
	}
	for _, c := range m.ToolCalls {
		out = append(out, anthropicBlock{Type: "tool_use", ID: anthropicID(c.ID), Name: callName(c.Name), Input: inputObject(c)})
	}
	return out
}

var anthropicIDs = pattern.New(`^[a-zA-Z0-9_-]+$`)

// anthropicID returns a call id in the provider's alphabet, always the same for the same id.
func anthropicID(id string) string {
	if anthropicIDs().MatchString(id) {
		return id
	}
	h := fnv.New64a()
	_, _ = h.Write([]byte(id)) // a hash takes everything
	return fmt.Sprintf("call_%016x", h.Sum64())
}
