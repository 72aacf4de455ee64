package cli

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// The messages of a process as the Messages API has them. Part of the wire format.
type (
	messageLine struct {
		lineHead           // assistant, user
		Message  any       `json:"message"`
		Parent   *string   `json:"parent_tool_use_id"` // null: it is the process's own
		Time     time.Time `json:"timestamp"`
		Cut      int       `json:"cut_bytes,omitempty"` // bytes that are missing of a very long text, or of thoughts
	}
	answerBody struct {
		ID       string    `json:"id"`
		Type     string    `json:"type"` // message
		Role     string    `json:"role"` // assistant
		Model    string    `json:"model"`
		Content  []any     `json:"content"`
		Stop     *string   `json:"stop_reason"`
		Sequence *string   `json:"stop_sequence"` // null: it is not known
		Usage    *apiUsage `json:"usage,omitempty"`
	}
	userBody struct {
		Role    string `json:"role"` // user
		Content []any  `json:"content"`
	}
	textBlock struct {
		Type string `json:"type"` // text
		Text string `json:"text"`
	}
	thoughtBlock struct {
		Type      string `json:"type"` // thinking
		Thinking  string `json:"thinking"`
		Signature string `json:"signature"` // empty: it is in the record alone
	}
	callBlock struct {
		Type  string          `json:"type"` // tool_use
		ID    string          `json:"id"`
		Name  string          `json:"name"`
		Input json.RawMessage `json:"input"`
	}
	resultBlock struct {
		Type    string `json:"type"` // tool_result
		CallID  string `json:"tool_use_id"`
		Content string `json:"content"`
		IsError bool   `json:"is_error"`
	}
	apiUsage struct {
		Input      int  `json:"input_tokens"`
		Output     int  `json:"output_tokens"`
		CacheWrite int  `json:"cache_creation_input_tokens"`
		CacheRead  int  `json:"cache_read_input_tokens"`
		Estimated  bool `json:"estimated,omitempty"` // some of it was counted by us
	}
)

// messages writes the messages of the process up to a step that are new since the last call. What cannot be read now is written by a later one, or is in the result.
// Each answer of the record is waited for so long; what is written may take as long as whoever reads it wants.
func (t *lineStream) messages(ctx context.Context, c *ipc.Client, upTo int, patience time.Duration) error {
	for {
		from := max(t.next, 1)
		if t.next == 0 && !t.since.IsZero() {
			from = -ipc.PageMessages // one step brings fewer
		}
		r, err := callWithin(ctx, patience, c, ipc.ListMessages, ipc.MessagesRequest{Target: t.spawn.UUID.String(), From: from, MaxBytes: ipc.MaxTextBytes})
		if err != nil {
			return err
		}
		if err := t.totals.read(ctx, c, t.spawn.UUID, patience); err != nil { // all that have a message by now
			return err
		}
		for i := range r.Messages {
			m := &r.Messages[i]
			if m.N < t.next {
				continue
			}
			if m.Step > upTo { // its events have not come yet
				return nil
			}
			if t.next = m.N + 1; m.Time.Before(t.since) { // it is of an earlier run
				continue
			}
			if m.Role == "assistant" && t.totals.took[m.Step] == nil { // its step has ended while it was read
				if err := t.totals.read(ctx, c, t.spawn.UUID, patience); err != nil {
					return err
				}
			}
			t.message(m)
		}
		if r.Next == 0 || len(r.Messages) == 0 {
			return nil
		}
	}
}

// callWithin is ipc.Call with a time limit.
func callWithin[Req, Resp any](ctx context.Context, limit time.Duration, c *ipc.Client, m ipc.Method[Req, Resp], req Req) (Resp, error) {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return ipc.Call(ctx, c, m, req)
}

// message writes one message. What persons say to the process, the intent and steering, is not repeated: this client may have sent it.
func (t *lineStream) message(m *ipc.ConversationMessage) {
	line := &messageLine{Time: m.Time, Cut: m.Cut}
	switch {
	case m.Role == "assistant":
		body := t.answer(m)
		p := &t.pieces
		if p.step != m.Step { // an earlier answer, whose message could not be read in time: its pieces are closed, and those of another may be open
			p = &answerPieces{step: m.Step}
		} else if t.partial {
			t.write(p.end(body, answerer{t.spawn.UUID, body.Model}))
		}
		line.Cut += p.lost
		*p = answerPieces{step: p.step, answer: p.answer, at: p.at, written: true}
		line.Message = body
		t.calls = nil
		for _, b := range body.Content {
			if c, ok := b.(callBlock); ok {
				t.calls = append(t.calls, c)
			}
		}
	case m.ToolCallID != "":
		line.Message = userBody{"user", []any{resultBlock{"tool_result", m.ToolCallID, m.Content, m.IsError}}}
		if i := slices.IndexFunc(t.calls, func(c callBlock) bool { return c.ID == m.ToolCallID }); i >= 0 && m.IsError && strings.HasPrefix(m.Content, refusal) && len(t.refused) < types.MaxDenials {
			t.refused = append(t.refused, refusedCall{t.calls[i], m.Content})
		}
	case m.Role == "user" && m.From != "" && m.From != "user" && m.From != "steer" && m.From != "system":
		line.Message = userBody{"user", []any{textBlock{"text", m.Content}}}
	default:
		return
	}
	line.lineHead = t.head("user", "")
	if m.Role == "assistant" {
		line.Type = "assistant"
	}
	t.out.object(line)
}

// answer is an answer of the model, with its thoughts as far as events had them.
func (t *lineStream) answer(m *ipc.ConversationMessage) *answerBody {
	body := &answerBody{ID: messageID(t.spawn.UUID, m.Step), Type: "message", Role: m.Role, Model: t.model().model, Content: append([]any{}, t.pieces.content(m.Step, m.Content)...)}
	if a := t.totals.take(m.Step); a != nil {
		body.Model, body.Stop, body.Usage = cmp.Or(a.Model, body.Model), stopOf(a.StopReason), usageOf(a)
	}
	for _, c := range m.ToolCalls {
		body.Content = append(body.Content, callBlock{"tool_use", c.ID, c.Name, inputOf(c.Input)})
	}
	return body
}

// inputOf is the input of a call as an object, which those who read it expect. One that is none, or was cut, is in it as a text.
func inputOf(text string) json.RawMessage {
	var fields map[string]json.RawMessage
	if json.Unmarshal([]byte(text), &fields) == nil && fields != nil {
		return json.RawMessage(text)
	}
	input, _ := json.Marshal(map[string]string{"unparsed": text}) // texts always can be
	return input
}

// usageOf is the usage of an answer.
func usageOf(a *ipc.StepAnswer) *apiUsage {
	return &apiUsage{Input: max(a.TokensUsed-a.Output-a.CacheRead-a.CacheWrite, 0), Output: a.Output, CacheRead: a.CacheRead, CacheWrite: a.CacheWrite, Estimated: a.Estimated}
}

// stopOf is why a model stopped, if the Messages API has a name for it.
func stopOf(reason string) *string {
	switch reason {
	case "end_turn", "tool_use", "max_tokens", "stop_sequence", "refusal":
		return &reason
	}
	return nil
}
