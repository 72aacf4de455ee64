package llm

import (
	"encoding/json"
	"strings"

	rnixctx "rnix/context"
	"rnix/types"
)

// anthropicEvent is an event of the Messages API, with the fields of all types.
type anthropicEvent struct {
	Type    string `json:"type"`
	Index   int    `json:"index"`
	Message struct {
		Model string         `json:"model"`
		Usage anthropicUsage `json:"usage"`
	} `json:"message"`
	Block json.RawMessage `json:"content_block"`
	Delta struct {
		Type      string `json:"type"`
		Text      string `json:"text"`
		JSON      string `json:"partial_json"`
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"`
		Stop      string `json:"stop_reason"`
	} `json:"delta"`
	Usage anthropicUsage `json:"usage"`
}

type anthropicUsage struct {
	Input      count `json:"input_tokens"`
	Output     count `json:"output_tokens"`
	CacheRead  count `json:"cache_read_input_tokens"`
	CacheWrite count `json:"cache_creation_input_tokens"`
}

// anthropicAnswer puts an answer together from its events.
type anthropicAnswer struct {
	http  *httpClient
	model string
	emit  func(StreamEvent)

	blocks []*answerBlock // in the order in which they began
	index  map[int]*answerBlock
	stop   string
	usage  anthropicUsage
}

// answerBlock is a block under way.
type answerBlock struct {
	raw    json.RawMessage // as it began
	kind   string
	id     string
	name   string
	input  json.RawMessage // what the block began with
	text   strings.Builder // text, thinking or arguments
	sign   strings.Builder
	closed bool
}

// each takes one event.
func (a *anthropicAnswer) each(ev sseEvent) (piece, error) {
	var e anthropicEvent
	if err := json.Unmarshal(ev.data, &e); err != nil {
		return lifeSign, a.garbled("not JSON: %.100q", ev.data)
	}
	switch e.Type {
	case "message_start":
		if e.Message.Model != "" {
			a.model = e.Message.Model
		}
		a.count(e.Message.Usage)
	case "content_block_start":
		return something, a.begin(e)
	case "content_block_delta":
		return something, a.add(e)
	case "content_block_stop":
		b, err := a.block(e.Index)
		if err != nil {
			return lifeSign, err
		}
		b.closed = true
	case "message_delta":
		if e.Delta.Stop != "" {
			a.stop = e.Delta.Stop
		}
		a.count(e.Usage)
	case "message_stop":
		return theLast, nil
	case "error":
		return lifeSign, a.http.problem(explain(ev.data), a.model)
	default: // pings, and types that are newer than we
		return lifeSign, nil
	}
	return something, nil
}

func (a *anthropicAnswer) garbled(format string, args ...any) error {
	return types.Errorf(types.ErrUnavailable, "Call", a.http.cfg.Name, "the stream is garbled: "+format, args...)
}

func (a *anthropicAnswer) count(u anthropicUsage) {
	a.usage.Input.update(u.Input)
	a.usage.Output.update(u.Output)
	a.usage.CacheRead.update(u.CacheRead)
	a.usage.CacheWrite.update(u.CacheWrite)
}

func (a *anthropicAnswer) begin(e anthropicEvent) error {
	if a.index[e.Index] != nil {
		return a.garbled("block %d begins twice", e.Index)
	}
	var head struct {
		Type     string          `json:"type"`
		ID       string          `json:"id"`
		Name     string          `json:"name"`
		Input    json.RawMessage `json:"input"`
		Text     string          `json:"text"`
		Thinking string          `json:"thinking"`
	}
	if err := json.Unmarshal(e.Block, &head); err != nil {
		return a.garbled("a block that is none: %.100q", e.Block)
	}
	b := &answerBlock{raw: e.Block, kind: head.Type, id: head.ID, name: head.Name, input: head.Input}
	a.blocks = append(a.blocks, b)
	if a.index == nil {
		a.index = map[int]*answerBlock{}
	}
	a.index[e.Index] = b
	switch b.kind {
	case "text":
		a.say(b, EventText, head.Text)
	case "thinking":
		a.say(b, EventReasoning, head.Thinking)
	}
	return nil
}

// block returns the block of an index, which must be open.
func (a *anthropicAnswer) block(i int) (*answerBlock, error) {
	b := a.index[i]
	if b == nil || b.closed {
		return nil, a.garbled("a piece of block %d, which is not open", i)
	}
	return b, nil
}

func (a *anthropicAnswer) add(e anthropicEvent) error {
	b, err := a.block(e.Index)
	if err != nil {
		return err
	}
	switch d := e.Delta; d.Type {
	case "text_delta":
		a.say(b, EventText, d.Text)
	case "thinking_delta":
		a.say(b, EventReasoning, d.Thinking)
	case "signature_delta":
		b.sign.WriteString(d.Signature)
	case "input_json_delta":
		b.text.WriteString(d.JSON)
	}
	return nil
}

func (a *anthropicAnswer) say(b *answerBlock, kind EventType, text string) {
	if text != "" {
		b.text.WriteString(text)
		a.emit(StreamEvent{Type: kind, Text: text})
	}
}

// response is the whole answer. sent is the size of the request in bytes.
func (a *anthropicAnswer) response(sent int) *LLMResponse {
	r := &LLMResponse{Provider: a.http.cfg.Name, Model: a.model}
	var content, reasoning strings.Builder
	for _, b := range a.blocks {
		text := b.text.String()
		switch b.kind {
		case "text":
			content.WriteString(text)
		case "thinking":
			if reasoning.Len() > 0 {
				reasoning.WriteString("\n\n")
			}
			reasoning.WriteString(text)
			r.Blocks = append(r.Blocks, a.keep(b, text))
		case "redacted_thinking":
			r.Blocks = append(r.Blocks, a.keep(b, ""))
		case "tool_use":
			if text == "" {
				text = string(b.input)
			}
			r.ToolCalls = append(r.ToolCalls, makeCall(b.id, b.name, text))
		}
	}
	r.Content, r.Reasoning = content.String(), reasoning.String()
	r.StopReason = stopOf(anthropicStop(a.stop), r.ToolCalls)
	u := a.usage
	known := u.Input.said && u.Output.said && !u.Input.bad && !u.Output.bad && !u.CacheRead.bad && !u.CacheWrite.bad
	r.settle(Usage{Input: u.Input.n, Output: u.Output.n, CacheRead: u.CacheRead.n, CacheWrite: u.CacheWrite.n}, known, sent)
	return r
}

// keep returns a block that must be sent back as it came, with what was streamed filled in.
func (a *anthropicAnswer) keep(b *answerBlock, thinking string) rnixctx.Block {
	data := b.raw
	if b.kind == "thinking" {
		fields := map[string]json.RawMessage{}
		_ = json.Unmarshal(b.raw, &fields) // it was read before
		fields["thinking"], _ = encode(thinking)
		if b.sign.Len() > 0 {
			fields["signature"], _ = encode(b.sign.String())
		}
		data, _ = encode(fields) // strings and valid JSON always encode
	}
	return rnixctx.Block{Provider: a.http.cfg.Name, Data: data}
}

func anthropicStop(reason string) string {
	switch reason {
	case "pause_turn":
		return "end_turn"
	case "model_context_window_exceeded":
		return "max_tokens"
	}
	return reason
}
