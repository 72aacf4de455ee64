package cli

import (
	"encoding/json"
	"strconv"
	"strings"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

// pieceLine is an event of the Messages API, while the answer comes.
type pieceLine struct {
	lineHead
	Event  *apiEvent `json:"event"`
	Parent *string   `json:"parent_tool_use_id"` // null: it is the process's own
}

type (
	apiEvent struct {
		Type    string      `json:"type"` // message_start, content_block_start, ...
		Message *answerBody `json:"message,omitempty"`
		Index   *int        `json:"index,omitempty"`
		Block   any         `json:"content_block,omitempty"`
		Delta   any         `json:"delta,omitempty"`
		Usage   *apiUsage   `json:"usage,omitempty"`
	}
	textDelta struct {
		Type string `json:"type"` // text_delta
		Text string `json:"text"`
	}
	thoughtDelta struct {
		Type     string `json:"type"` // thinking_delta
		Thinking string `json:"thinking"`
	}
	inputDelta struct {
		Type  string `json:"type"` // input_json_delta
		Input string `json:"partial_json"`
	}
	stopDelta struct {
		Stop     *string `json:"stop_reason"`
		Sequence *string `json:"stop_sequence"` // null: it is not known
	}
)

// answerer names the process and the model of an answer.
type answerer struct {
	process types.UUID
	model   string
}

// answerPieces collects the answer of a step from the events of the process.
type answerPieces struct {
	step    int            // 0 = not known
	answer  uint64         // its number; 0 = nothing has come
	at      map[string]int // how far it has come, in bytes by voice
	lost    int            // bytes of its thoughts that have not come
	blocks  []answerBlock  // as far as they have come
	started bool           // its message_start was written
	open    bool           // the last block is not closed
	written bool           // its message was written
}

type answerBlock struct {
	thought bool
	text    []byte
}

// isPiece reports whether an event is a part of an answer.
func isPiece(e *ipc.Event) bool {
	return e.Kind == event.Piece || e.Kind == event.LogLine && e.Answer != 0
}

// add takes a piece of an answer, or the rest of a line of it, and returns its events of the Messages API. The next daemon may send again what has come.
func (s *answerPieces) add(e *ipc.Event, by answerer) (out []*apiEvent) {
	if e.Answer != s.answer { // one that broke off may have been before
		out = s.broken()
		*s = answerPieces{step: s.step, answer: e.Answer}
	}
	text := s.rest(e)
	if text == "" {
		return out
	}
	if !s.started {
		out = append(out, s.start(by))
	}
	thought := e.Name == "think"
	if n := len(s.blocks); n == 0 || s.blocks[n-1].thought != thought {
		out = append(out, s.stop()...)
		out = append(out, &apiEvent{Type: "content_block_start", Index: new(n), Block: blockOf(thought, "")})
		s.blocks, s.open = append(s.blocks, answerBlock{thought: thought}), true
	}
	last := len(s.blocks) - 1
	s.blocks[last].text = append(s.blocks[last].text, text...)
	if thought {
		return append(out, &apiEvent{Type: "content_block_delta", Index: &last, Delta: thoughtDelta{"thinking_delta", text}})
	}
	return append(out, &apiEvent{Type: "content_block_delta", Index: &last, Delta: textDelta{"text_delta", text}})
}

func (s *answerPieces) start(by answerer) *apiEvent {
	s.started = true
	return &apiEvent{Type: "message_start", Message: &answerBody{ID: messageID(by.process, s.step), Type: "message", Role: "assistant", Model: by.model, Content: []any{}, Usage: &apiUsage{}}}
}

// rest returns the part of a piece that has not come before, and notes how far the answer has come, and what is missing of its thoughts. A very long line is
// shortened in the log.
func (s *answerPieces) rest(e *ipc.Event) string {
	text, end := e.Text, e.At+len(e.Text)
	if e.Kind == event.LogLine {
		if end = e.At + e.Total; len(text) < e.Total {
			text += "\n"
		}
	}
	from := s.at[e.Name]
	if end <= from {
		return ""
	}
	if s.at == nil {
		s.at = map[string]int{}
	}
	s.at[e.Name] = end
	cut := min(max(from-e.At, 0), len(text))
	if e.Name == "think" {
		s.lost += max(e.At-from, 0) + max(end-max(e.At, from)-(len(text)-cut), 0)
	}
	return text[cut:]
}

// broken returns the events that close the message of an answer that has broken off, if it has begun.
func (s *answerPieces) broken() []*apiEvent {
	if !s.started {
		return nil
	}
	return append(s.stop(), &apiEvent{Type: "message_stop"})
}

func (s *answerPieces) stop() []*apiEvent {
	if !s.open {
		return nil
	}
	s.open = false
	return []*apiEvent{{Type: "content_block_stop", Index: new(len(s.blocks) - 1)}}
}

// end returns the events that are left once the message of the answer is on record: further blocks, the stop reason and the usage.
func (s *answerPieces) end(m *answerBody, by answerer) (out []*apiEvent) {
	if !s.started {
		out = append(out, s.start(by))
	}
	out = append(out, s.stop()...)
	n := len(s.blocks)
	whole := func(block, delta any) {
		out = append(out, &apiEvent{Type: "content_block_start", Index: new(n), Block: block}, &apiEvent{Type: "content_block_delta", Index: new(n), Delta: delta},
			&apiEvent{Type: "content_block_stop", Index: new(n)})
		n++
	}
	for _, b := range m.Content {
		switch b := b.(type) {
		case textBlock:
			if len(s.blocks) == 0 {
				whole(textBlock{Type: b.Type}, textDelta{"text_delta", b.Text})
			}
		case callBlock:
			whole(callBlock{b.Type, b.ID, b.Name, json.RawMessage("{}")}, inputDelta{"input_json_delta", string(b.Input)})
		}
	}
	return append(out, &apiEvent{Type: "message_delta", Delta: stopDelta{Stop: m.Stop}, Usage: m.Usage}, &apiEvent{Type: "message_stop"})
}

// content returns the thoughts and the text of an answer in their order.
func (s *answerPieces) content(step int, text string) (out []any) {
	said := []answerBlock{{text: []byte(text)}}
	if s.step == step && len(s.blocks) > 0 {
		said = s.inOrder(text)
	}
	for _, b := range said {
		if len(b.text) > 0 {
			out = append(out, blockOf(b.thought, string(b.text)))
		}
	}
	return out
}

// inOrder returns the blocks of an answer with this text. Where the pieces do not add up to the text on record, all thoughts come first, and then that text.
func (s *answerPieces) inOrder(text string) []answerBlock {
	var thoughts, aloud []byte
	var spoken []int
	for i, b := range s.blocks {
		if b.thought {
			thoughts = append(thoughts, b.text...)
			continue
		}
		aloud = append(aloud, b.text...)
		spoken = append(spoken, i)
	}
	if strings.TrimSpace(string(aloud)) != strings.TrimSpace(text) {
		return []answerBlock{{true, thoughts}, {text: []byte(text)}}
	}
	if len(spoken) == 1 {
		s.blocks[spoken[0]].text = []byte(text)
	}
	return s.blocks
}

func blockOf(thought bool, text string) any {
	if thought {
		return thoughtBlock{Type: "thinking", Thinking: text}
	}
	return textBlock{"text", text}
}

// messageID is the id of an answer, which no other process has.
func messageID(id types.UUID, step int) string {
	return "msg_" + strings.ReplaceAll(id.String(), "-", "") + "_" + strconv.Itoa(step)
}

// write writes events of the Messages API as lines.
func (t *lineStream) write(list []*apiEvent) {
	for _, e := range list {
		t.out.object(&pieceLine{lineHead: t.head("stream_event", ""), Event: e})
	}
}
