package cli

import (
	"context"
	"encoding/json"
	"strconv"
	"time"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// The lines of stream-json that have the form of Claude Code's, for programs that read these: what a process is at its beginning, and its messages as the
// Messages API has them. Part of the wire format.
type (
	systemLine struct {
		Type      string     `json:"type"`    // system
		Subtype   string     `json:"subtype"` // init
		SessionID types.UUID `json:"session_id"`
		Cwd       string     `json:"cwd"`
		Model     string     `json:"model"`
		Tools     []string   `json:"tools"`       // not known: empty
		Servers   []string   `json:"mcp_servers"` // likewise
	}
	messageLine struct {
		Type      string      `json:"type"` // assistant, user
		Message   messageBody `json:"message"`
		Parent    *string     `json:"parent_tool_use_id"` // null: it is the process's own
		SessionID types.UUID  `json:"session_id"`
	}
	messageBody struct {
		ID      string         `json:"id,omitempty"`
		Type    string         `json:"type,omitempty"` // message
		Role    string         `json:"role"`
		Model   string         `json:"model,omitempty"`
		Content []messageBlock `json:"content"`
	}
	messageBlock struct {
		Type      string          `json:"type"` // text, tool_use, tool_result
		Text      string          `json:"text,omitempty"`
		ID        string          `json:"id,omitempty"`
		Name      string          `json:"name,omitempty"`
		Input     json.RawMessage `json:"input,omitempty"`
		ToolUseID string          `json:"tool_use_id,omitempty"`
		Content   *string         `json:"content,omitempty"`
		IsError   bool            `json:"is_error,omitempty"`
	}
	partialLine struct {
		Type      string     `json:"type"` // stream_event
		Event     blockDelta `json:"event"`
		Parent    *string    `json:"parent_tool_use_id"`
		SessionID types.UUID `json:"session_id"`
	}
	blockDelta struct {
		Type  string    `json:"type"` // content_block_delta
		Index int       `json:"index"`
		Delta textDelta `json:"delta"`
	}
	textDelta struct {
		Type     string `json:"type"` // text_delta, thinking_delta
		Text     string `json:"text,omitempty"`
		Thinking string `json:"thinking,omitempty"`
	}
)

// messageLines writes the messages of a process as they are recorded.
type messageLines struct {
	next  int       // the number of the first message that was not written
	since time.Time // messages before are of an earlier run
}

// write writes the messages that are new since the last call. What cannot be read now is written by a later one, or is in the result.
func (m *messageLines) write(ctx context.Context, c *ipc.Client, out *output, s *ipc.SpawnResponse) error {
	for {
		from := max(m.next, 1)
		if m.next == 0 && !m.since.IsZero() {
			from = -ipc.PageMessages // one step brings fewer
		}
		r, err := ipc.Call(ctx, c, ipc.ListMessages, ipc.MessagesRequest{Target: s.UUID.String(), From: from, MaxBytes: ipc.MaxTextBytes})
		if err != nil {
			return err
		}
		for i := range r.Messages {
			msg := &r.Messages[i]
			if msg.N < m.next {
				continue
			}
			m.next = msg.N + 1
			if msg.Time.Before(m.since) {
				continue
			}
			if line := messageOf(msg, s); line != nil {
				out.object(line)
			}
		}
		if r.Next == 0 || len(r.Messages) == 0 {
			return nil
		}
	}
}

// messageOf is the line of a message; nil = it has none: what the process was told is not repeated to who has told it.
func messageOf(m *ipc.ConversationMessage, s *ipc.SpawnResponse) *messageLine {
	line := &messageLine{Type: m.Role, SessionID: s.UUID}
	switch {
	case m.Role == "assistant":
		line.Message = messageBody{ID: "msg_" + strconv.Itoa(m.N), Type: "message", Role: m.Role, Model: s.Model, Content: []messageBlock{}}
		if m.Content != "" {
			line.Message.Content = append(line.Message.Content, messageBlock{Type: "text", Text: m.Content})
		}
		for _, c := range m.ToolCalls {
			input := json.RawMessage(c.Input)
			if !json.Valid(input) {
				input, _ = json.Marshal(c.Input) // a text always can be
			}
			line.Message.Content = append(line.Message.Content, messageBlock{Type: "tool_use", ID: c.ID, Name: c.Name, Input: input})
		}
	case m.ToolCallID != "":
		line.Type = "user"
		line.Message = messageBody{Role: "user", Content: []messageBlock{{Type: "tool_result", ToolUseID: m.ToolCallID, Content: &m.Content, IsError: m.IsError}}}
	case m.Role == "user" && m.From != "" && m.From != "user" && m.From != "system":
		line.Message = messageBody{Role: "user", Content: []messageBlock{{Type: "text", Text: m.Content}}}
	default:
		return nil
	}
	return line
}

// partialOf is the line of a piece of an answer, or of the rest of a line of it.
func partialOf(e *ipc.Event) *partialLine {
	text := e.Text
	if e.Kind == event.LogLine && len(text) < e.Total {
		text += "\n"
	}
	if text == "" {
		return nil
	}
	d := textDelta{Type: "text_delta", Text: text}
	if e.Name == "think" {
		d = textDelta{Type: "thinking_delta", Thinking: text}
	}
	return &partialLine{Type: "stream_event", Event: blockDelta{Type: "content_block_delta", Delta: d}, SessionID: e.UUID}
}
