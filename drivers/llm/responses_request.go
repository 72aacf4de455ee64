package llm

import (
	"encoding/json"

	rnixctx "rnix/context"
)

// responsesRequest is the request of the Responses API.
type responsesRequest struct {
	Model        string              `json:"model"`
	Instructions string              `json:"instructions,omitempty"`
	Stream       bool                `json:"stream"`
	Store        bool                `json:"store"`
	Include      []string            `json:"include,omitempty"`
	Reasoning    *responsesReasoning `json:"reasoning,omitempty"`
	MaxTokens    int                 `json:"max_output_tokens,omitempty"`
	CacheKey     string              `json:"prompt_cache_key,omitempty"`
	Tools        []responsesTool     `json:"tools,omitempty"`
	Input        []any               `json:"input"`
}

type responsesReasoning struct {
	Effort  string `json:"effort,omitempty"`
	Summary string `json:"summary,omitempty"`
}

type responsesTool struct {
	Type        string          `json:"type"`
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Parameters  json.RawMessage `json:"parameters"`
	Strict      bool            `json:"strict"`
}

// responsesMessage is an item of what was said: by a user or the model.
type responsesMessage struct {
	Type    string `json:"type"` // message
	Role    string `json:"role"`
	Content []any  `json:"content"` // responsesText or responsesData
}

type responsesText struct {
	Type string `json:"type"` // input_text or output_text
	Text string `json:"text"`
}

// responsesData is an image or a document.
type responsesData struct {
	Type  string `json:"type"` // input_image or input_file
	Image string `json:"image_url,omitempty"`
	Name  string `json:"filename,omitempty"`
	Data  string `json:"file_data,omitempty"`
}

type responsesCall struct {
	Type      string `json:"type"` // function_call
	CallID    string `json:"call_id"`
	Name      string `json:"name"`
	Arguments string `json:"arguments"`
}

type responsesResult struct {
	Type   string `json:"type"` // function_call_output
	CallID string `json:"call_id"`
	Output any    `json:"output"` // a text, or parts
}

// responsesThought is what a Block of this driver holds: an item of reasoning as it came, and before which of the answer's other items it stood.
type responsesThought struct {
	At   int             `json:"at"` // how many other items came before it
	Item json.RawMessage `json:"item"`
}

// leastOutput is the smallest bound of an answer that the API takes, in tokens.
const leastOutput = 16

// encode converts a request, in the way that the model is known to want. forget leaves out what was thought before.
func (d *ResponsesDriver) encode(req LLMRequest, forget bool) ([]byte, error) {
	cfg := d.http.cfg
	out := responsesRequest{Model: req.Model, Instructions: req.SystemPrompt, Stream: true, MaxTokens: cfg.MaxTokens}
	if req.MaxTokens > 0 {
		out.MaxTokens = max(req.MaxTokens, leastOutput)
	}
	if cfg.CacheKey && d.takes(req.Model, optCacheKey) {
		out.CacheKey = req.Session
	}
	if d.takes(req.Model, optEncrypted) {
		out.Include = []string{optEncrypted}
	}
	r := responsesReasoning{Effort: req.effort(cfg)}
	if d.takes(req.Model, optEncrypted) && d.takes(req.Model, optSummary) { // else it does not reason, or its account may not see how
		r.Summary = "auto"
	}
	if r != (responsesReasoning{}) {
		out.Reasoning = &r
	}
	for _, t := range req.Tools {
		out.Tools = append(out.Tools, responsesTool{"function", t.Name, t.Description, schemaOf(t), false})
	}
	s := attached(req, d.Info().Abilities, &d.refused)
	for _, m := range s.messages {
		out.Input = append(out.Input, d.items(s, m, forget)...)
	}
	return encode(out)
}

// items are what a message is in the API.
func (d *ResponsesDriver) items(s shown, m rnixctx.Message, forget bool) (out []any) {
	parts := func(kind string) []any { return append([]any{responsesText{kind, m.Content}}, responsesShown(s, m)...) }
	switch m.Role {
	case rnixctx.RoleTool:
		if m.Content == "" {
			m.Content = "(no output)"
		}
		if m.IsError {
			m.Content = "Error: " + m.Content // the API has no field for it
		}
		if len(m.Attachments) == 0 {
			return []any{responsesResult{"function_call_output", m.ToolCallID, m.Content}}
		}
		return []any{responsesResult{"function_call_output", m.ToolCallID, parts("input_text")}}
	case rnixctx.RoleAssistant:
		if m.Content != "" {
			out = append(out, responsesMessage{"message", "assistant", parts("output_text")})
		}
		for _, c := range m.ToolCalls {
			out = append(out, responsesCall{"function_call", c.ID, callName(c.Name), string(inputObject(c))})
		}
		if !forget {
			out = d.withThoughts(out, m.Reasoning)
		}
		return out
	}
	if m.Content == "" {
		m.Content = "(empty)"
	}
	return []any{responsesMessage{"message", "user", parts("input_text")}}
}

// responsesShown are the images and documents of a message.
func responsesShown(s shown, m rnixctx.Message) (out []any) {
	for i := range m.Attachments {
		if a := &m.Attachments[i]; a.Image() {
			out = append(out, responsesData{Type: "input_image", Image: s.url(a)})
		} else {
			out = append(out, responsesData{Type: "input_file", Name: a.Name, Data: s.url(a)})
		}
	}
	return out
}

// withThoughts puts what was thought back to where it stood among the items of an answer. A thought that no item follows is left out: the
// API refuses it.
func (d *ResponsesDriver) withThoughts(items []any, blocks []rnixctx.Block) (out []any) {
	at := 0
	for _, b := range blocks {
		var t responsesThought
		if b.Provider != d.http.cfg.Name || json.Unmarshal(b.Data, &t) != nil || len(t.Item) == 0 || t.At >= len(items) {
			continue
		}
		for ; at < t.At; at++ {
			out = append(out, items[at])
		}
		out = append(out, t.Item)
	}
	return append(out, items[at:]...)
}
