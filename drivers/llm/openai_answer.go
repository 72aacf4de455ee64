package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	rnixctx "rnix/context"
	"rnix/types"
)

// openaiChunk is a piece of an answer, with the variants of the fields that are in use.
type openaiChunk struct {
	Model   string          `json:"model"`
	Error   json.RawMessage `json:"error"`
	Choices []struct {
		Index  int         `json:"index"`
		Delta  openaiDelta `json:"delta"`
		Finish string      `json:"finish_reason"`
	} `json:"choices"`
	Usage *openaiUsage `json:"usage"`
	XGroq struct {
		Usage *openaiUsage `json:"usage"`
	} `json:"x_groq"`
}

type openaiDelta struct {
	Content          looseText `json:"content"`
	Refusal          looseText `json:"refusal"`
	ReasoningContent looseText `json:"reasoning_content"`
	Reasoning        looseText `json:"reasoning"`
	ToolCalls        []struct {
		Index    *int   `json:"index"`
		ID       string `json:"id"`
		Function struct {
			Name      string    `json:"name"`
			Arguments looseText `json:"arguments"`
		} `json:"function"`
	} `json:"tool_calls"`
}

type openaiUsage struct {
	Prompt     count `json:"prompt_tokens"`
	Completion count `json:"completion_tokens"`
	Details    struct {
		Cached count `json:"cached_tokens"`
	} `json:"prompt_tokens_details"`
	CacheHit count `json:"prompt_cache_hit_tokens"`
}

// looseText is a text where servers also send null, a list of text parts, or, for arguments, an
// object, which is then taken as its JSON.
type looseText string

// UnmarshalJSON never fails on valid JSON.
func (t *looseText) UnmarshalJSON(b []byte) error {
	var s string
	if json.Unmarshal(b, &s) == nil {
		*t = looseText(s)
		return nil
	}
	var parts []struct {
		Text string `json:"text"`
	}
	if json.Unmarshal(b, &parts) == nil {
		for _, p := range parts {
			*t += looseText(p.Text)
		}
		return nil
	}
	*t = looseText(b)
	return nil
}

// openaiAnswer puts an answer together from its pieces.
type openaiAnswer struct {
	http  *httpClient
	model string
	emit  func(StreamEvent)

	begun     bool // something came
	content   strings.Builder
	reasoning strings.Builder
	keep      bool // the reasoning came in the field that is sent back
	refused   bool
	calls     []*openaiPending // in the order in which they began
	finish    string
	usage     *openaiUsage
}

// openaiPending is a call under way.
type openaiPending struct {
	index    int
	id, name string
	args     strings.Builder
}

// each takes one event.
func (a *openaiAnswer) each(ev sseEvent) (piece, error) {
	data := bytes.TrimSpace(ev.data)
	if string(data) == "[DONE]" {
		return theLast, nil
	}
	var c openaiChunk
	if err := json.Unmarshal(data, &c); err != nil {
		return lifeSign, types.Errorf(types.ErrUnavailable, "Call", a.http.cfg.Name, "the stream is garbled: not a piece of an answer: %.100q", data)
	}
	if ev.name == "error" || len(c.Error) > 0 && string(c.Error) != "null" {
		return lifeSign, a.http.problem(explain(data), a.model)
	}
	a.begun = true
	what := lifeSign
	if c.Model != "" {
		a.model = c.Model
	}
	for _, u := range []*openaiUsage{c.Usage, c.XGroq.Usage} {
		if u != nil {
			a.usage, what = u, something
		}
	}
	for _, choice := range c.Choices {
		if choice.Index != 0 {
			continue // we asked for one
		}
		if a.add(choice.Delta) {
			what = something
		}
		if choice.Finish != "" {
			a.finish, what = choice.Finish, something
		}
	}
	return what, nil
}

// add takes a piece, and reports whether anything is in it.
func (a *openaiAnswer) add(d openaiDelta) bool {
	if d.ReasoningContent != "" {
		a.keep = true
	} else {
		d.ReasoningContent = d.Reasoning
	}
	if d.ReasoningContent != "" {
		a.reasoning.WriteString(string(d.ReasoningContent))
		a.emit(StreamEvent{Type: EventReasoning, Text: string(d.ReasoningContent)})
	}
	a.refused = a.refused || d.Refusal != ""
	if text := string(d.Content + d.Refusal); text != "" {
		a.content.WriteString(text)
		a.emit(StreamEvent{Type: EventText, Text: text})
	}
	for _, t := range d.ToolCalls {
		p := a.pending(t.Index, t.ID, t.Function.Name)
		if p.id == "" {
			p.id = t.ID
		}
		if p.name == "" {
			p.name = t.Function.Name
		}
		p.args.WriteString(string(t.Function.Arguments))
	}
	return d.ReasoningContent != "" || d.Content != "" || d.Refusal != "" || len(d.ToolCalls) > 0
}

// pending finds the call that a piece belongs to. A new id begins a new call, even where the index is
// missing or always 0, and so does a name where there is neither; any other piece belongs to the last.
func (a *openaiAnswer) pending(index *int, id, name string) *openaiPending {
	for i := len(a.calls) - 1; i >= 0; i-- {
		p := a.calls[i]
		if index != nil && p.index != *index {
			continue
		}
		again := index == nil && id == "" && name != "" && p.args.Len() > 0
		if !again && (id == "" || p.id == "" || p.id == id) {
			return p
		}
		if index == nil {
			break
		}
	}
	p := &openaiPending{index: len(a.calls)}
	if index != nil {
		p.index = *index
	}
	a.calls = append(a.calls, p)
	return p
}

// response is the whole answer. sent is the size of the request in bytes.
func (a *openaiAnswer) response(sent int) *LLMResponse {
	r := &LLMResponse{Content: a.content.String(), Reasoning: a.reasoning.String(), Provider: a.http.cfg.Name, Model: a.model}
	for _, p := range a.calls {
		r.ToolCalls = append(r.ToolCalls, makeCall(p.id, p.name, p.args.String()))
	}
	if a.keep && len(r.ToolCalls) > 0 {
		data, _ := encode(openaiReasoning{r.Reasoning}) // a string always encodes
		r.Blocks = []rnixctx.Block{{Provider: r.Provider, Data: data}}
	}
	stop := openaiStop(a.finish)
	if a.refused {
		stop = "refusal"
	}
	r.StopReason = stopOf(stop, r.ToolCalls)
	u, known := a.counted()
	r.settle(u, known, sent)
	return r
}

// counted divides the provider's counts into parts that do not overlap.
func (a *openaiAnswer) counted() (Usage, bool) {
	u := a.usage
	if u == nil || !u.Prompt.said || !u.Completion.said {
		return Usage{}, false
	}
	cached := u.Details.Cached
	cached.update(u.CacheHit)
	if u.Prompt.bad || u.Completion.bad || cached.bad || cached.n > u.Prompt.n {
		return Usage{}, false
	}
	return Usage{Input: u.Prompt.n - cached.n, Output: u.Completion.n, CacheRead: cached.n}, true
}

func openaiStop(reason string) string {
	switch reason {
	case "stop", "eos":
		return "end_turn"
	case "length":
		return "max_tokens"
	case "tool_calls", "function_call":
		return "tool_use"
	case "content_filter":
		return "refusal"
	}
	return reason
}
