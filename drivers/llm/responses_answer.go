package llm

import (
	"bytes"
	"encoding/json"
	"strings"

	rnixctx "rnix/context"
	"rnix/types"
)

// responsesEvent is a piece of an answer.
type responsesEvent struct {
	Type     string          `json:"type"`
	Delta    looseText       `json:"delta"`
	Item     json.RawMessage `json:"item"`
	Response struct {
		Model  string          `json:"model"`
		Status string          `json:"status"`
		Error  json.RawMessage `json:"error"`
		Why    struct {
			Reason string `json:"reason"`
		} `json:"incomplete_details"`
		Usage *responsesUsage `json:"usage"`
	} `json:"response"`
}

// responsesUsage counts: what was read from the cache is contained in the input, and what was thought in the output.
type responsesUsage struct {
	Input   count `json:"input_tokens"`
	Output  count `json:"output_tokens"`
	Details struct {
		Cached count `json:"cached_tokens"`
	} `json:"input_tokens_details"`
}

// responsesDone is an item of the answer that is complete.
type responsesDone struct {
	Type      string    `json:"type"`
	CallID    string    `json:"call_id"`
	Name      string    `json:"name"`
	Arguments looseText `json:"arguments"`
	Encrypted string    `json:"encrypted_content"`
	Content   []struct {
		Text    string `json:"text"`
		Refusal string `json:"refusal"`
	} `json:"content"`
}

// responsesAnswer puts an answer together from its pieces.
type responsesAnswer struct {
	http  *httpClient
	model string
	emit  func(StreamEvent)

	begun     bool // something came
	content   strings.Builder
	heard     int // bytes of content when the item under way began
	reasoning strings.Builder
	refused   bool
	said      bool // there is a message among the items
	calls     []rnixctx.ToolCall
	blocks    []rnixctx.Block
	stop      string
	usage     *responsesUsage
}

// each takes one event.
func (a *responsesAnswer) each(ev sseEvent) (piece, error) {
	data := bytes.TrimSpace(ev.data)
	if string(data) == "[DONE]" {
		return lifeSign, nil
	}
	var e responsesEvent
	if err := json.Unmarshal(data, &e); err != nil {
		return lifeSign, types.Errorf(types.ErrUnavailable, "Call", a.http.cfg.Name, "the stream is garbled: not a piece of an answer: %.100q", data)
	}
	if e.Response.Model != "" {
		a.model = e.Response.Model
	}
	switch e.Type {
	case "error":
		return lifeSign, a.http.problem(explain(data), a.model)
	case "response.failed":
		p := explain([]byte(`{"error":` + string(orNull(e.Response.Error)) + `}`))
		return lifeSign, a.http.problem(p, a.model)
	case "response.completed", "response.incomplete":
		return theLast, a.ended(&e)
	case "response.output_text.delta", "response.refusal.delta":
		a.begun, a.refused = true, a.refused || e.Type == "response.refusal.delta"
		a.text(string(e.Delta))
		return something, nil
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		a.begun = true
		a.think(string(e.Delta))
		return something, nil
	case "response.reasoning_summary_part.added":
		if a.reasoning.Len() > 0 {
			a.think("\n\n")
		}
	case "response.output_item.added":
		a.begun, a.heard = true, a.content.Len()
		return something, nil
	case "response.output_item.done":
		a.begun = true
		return something, a.item(e.Item)
	case "response.function_call_arguments.delta":
		return something, nil
	}
	return lifeSign, nil // what is newer than we, and what says the same again
}

func orNull(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 {
		return json.RawMessage("null")
	}
	return raw
}

func (a *responsesAnswer) text(s string) {
	if s != "" {
		a.content.WriteString(s)
		a.emit(StreamEvent{Type: EventText, Text: s})
	}
}

func (a *responsesAnswer) think(s string) {
	a.reasoning.WriteString(s)
	a.emit(StreamEvent{Type: EventReasoning, Text: s})
}

// item takes an item that is complete.
func (a *responsesAnswer) item(raw json.RawMessage) error {
	var i responsesDone
	if err := json.Unmarshal(raw, &i); err != nil {
		return types.Errorf(types.ErrUnavailable, "Call", a.http.cfg.Name, "the stream is garbled: not an item of an answer: %.100q", raw)
	}
	switch i.Type {
	case "message":
		if a.content.Len() == a.heard { // it did not come in pieces
			for _, c := range i.Content {
				a.refused = a.refused || c.Refusal != ""
				a.text(c.Text + c.Refusal)
			}
		}
		a.said = a.said || a.content.Len() > 0
	case "function_call":
		a.calls = append(a.calls, makeCall(i.CallID, i.Name, string(i.Arguments)))
	case "reasoning":
		if i.Encrypted == "" { // the vendor has kept nothing that an id could name
			break
		}
		at := len(a.calls)
		if a.said {
			at++
		}
		data, _ := encode(responsesThought{at, raw}) // it was read as JSON
		a.blocks = append(a.blocks, rnixctx.Block{Provider: a.http.cfg.Name, Data: data})
	}
	return nil
}

// ended takes the last event.
func (a *responsesAnswer) ended(e *responsesEvent) error {
	a.usage = e.Response.Usage
	switch {
	case e.Type == "response.completed":
		a.stop = "end_turn"
	case e.Response.Why.Reason == "max_output_tokens":
		a.stop = "max_tokens"
	case e.Response.Why.Reason == "content_filter":
		a.stop = "refusal"
	default:
		return types.Errorf(types.ErrUnavailable, "Call", a.http.cfg.Name, "the answer is not complete: %s", e.Response.Why.Reason)
	}
	return nil
}

// response is the whole answer. sent is the size of the request in bytes.
func (a *responsesAnswer) response(sent int) *LLMResponse {
	r := &LLMResponse{Content: a.content.String(), Reasoning: a.reasoning.String(), ToolCalls: a.calls, Blocks: a.blocks, Provider: a.http.cfg.Name, Model: a.model}
	if a.refused {
		a.stop = "refusal"
	}
	r.StopReason = stopOf(a.stop, r.ToolCalls)
	u, known := a.counted()
	r.settle(u, known, sent)
	return r
}

// counted divides the provider's counts into parts that do not overlap.
func (a *responsesAnswer) counted() (Usage, bool) {
	u := a.usage
	if u == nil || !u.Input.said || !u.Output.said {
		return Usage{}, false
	}
	cached := u.Details.Cached
	if u.Input.bad || u.Output.bad || cached.bad || cached.n > u.Input.n {
		return Usage{}, false
	}
	return Usage{Input: u.Input.n - cached.n, Output: u.Output.n, CacheRead: cached.n}, true
}
