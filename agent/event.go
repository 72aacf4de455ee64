package agent

import (
	"bytes"
	"encoding/json"
	"reflect"
	"time"

	"rnix/types"
)

// EventKind names what an Event is. Part of the wire format: never renamed, never used again.
type EventKind string

// The kinds. A session's events are one init, then any others, then exactly one result or error.
const (
	EventInit          EventKind = "init"
	EventSystem        EventKind = "system"
	EventAssistantText EventKind = "assistant_text"
	EventToolUse       EventKind = "tool_use"
	EventToolResult    EventKind = "tool_result"
	EventToolProgress  EventKind = "tool_progress"
	EventPermit        EventKind = "permit"
	EventUsage         EventKind = "usage"
	EventResult        EventKind = "result"
	EventError         EventKind = "error"
)

// Event is one thing that an agent's command line says while it works, whichever it is: one of the types
// of this file. Their values are not changed once they are sent.
type Event interface{ kind() EventKind }

// KindOf returns what an event is; it must not be nil.
func KindOf(e Event) EventKind { return e.kind() }

// InitEvent is the first of a session.
type InitEvent struct {
	SessionID  string            `json:"sessionId"` // the command line's own, which it resumes by
	Model      string            `json:"model,omitempty"`
	CWD        string            `json:"cwd,omitempty"`
	Tools      []string          `json:"tools,omitempty"`
	MCPServers map[string]string `json:"mcpServers,omitempty"` // name to status, in the command line's words
}

// SystemEvent is what the command line says of itself: a retry, a compaction, a denied permission. Subtype
// is in its own words.
type SystemEvent struct {
	Subtype string `json:"subtype"`
	Message string `json:"message,omitempty"`
}

// AssistantTextEvent is what the model said: a whole piece, or, with Delta, the next part of one. Parts
// come again as a whole piece.
type AssistantTextEvent struct {
	Text  string `json:"text"`
	Delta bool   `json:"delta,omitempty"`
}

// ToolUseEvent says that a tool is about to run. Each has one ToolResultEvent, unless the session ends
// before.
type ToolUseEvent struct {
	ToolUseID string          `json:"toolUseId"`
	ToolName  string          `json:"toolName"`
	Input     json.RawMessage `json:"input,omitempty"`    // a JSON object
	Category  string          `json:"category,omitempty"` // shell, file, web, mcp, agent; empty = not known
}

// ToolResultEvent says how a tool ended.
type ToolResultEvent struct {
	ToolUseID string `json:"toolUseId"`
	ToolName  string `json:"toolName,omitempty"`
	Content   string `json:"content,omitempty"`
	IsError   bool   `json:"isError,omitempty"`
}

// ToolProgressEvent says that a tool still runs.
type ToolProgressEvent struct {
	ToolUseID string        `json:"toolUseId"`
	ToolName  string        `json:"toolName,omitempty"`
	Elapsed   time.Duration `json:"elapsedNs,omitempty"`
}

// PermitEvent asks whether a tool may be called, before it is, or says that the answer is not waited for any more.
type PermitEvent struct {
	RequestID string          `json:"requestId"` // which the answer names
	ToolUseID string          `json:"toolUseId,omitempty"`
	ToolName  string          `json:"toolName,omitempty"`
	Input     json.RawMessage `json:"input,omitempty"`    // a JSON object
	Subagent  string          `json:"subagent,omitempty"` // that is about to make the call; empty = the agent itself, or that is not known
	Withdrawn bool            `json:"withdrawn,omitempty"`
}

// UsageEvent is what one request to a model has used, or, with Total, all since this run of the command line
// began, without what a session that it goes on with had used before. Input counts neither what was read
// from a cache nor what was written to it.
type UsageEvent struct {
	Model      string  `json:"model,omitempty"`
	Input      int     `json:"inputTokens"`
	Output     int     `json:"outputTokens"`
	CacheRead  int     `json:"cacheReadTokens,omitempty"`
	CacheWrite int     `json:"cacheWriteTokens,omitempty"`
	CostUSD    float64 `json:"costUsd,omitempty"` // as the command line says; 0 = it does not
	Total      bool    `json:"total,omitempty"`
}

// ResultEvent ends a session that has come to its end, well or not.
type ResultEvent struct {
	Success bool        `json:"success"`
	Message string      `json:"message,omitempty"` // what the agent answers
	Errors  []string    `json:"errors,omitempty"`
	Subtype string      `json:"subtype,omitempty"` // why it did not succeed: a word of internal/harness, or the command line's
	Turns   int         `json:"turns,omitempty"`
	Usage   *UsageEvent `json:"usage,omitempty"` // a Total
}

// ErrorEvent ends a session that has no result: the command line could not be started, crashed, or was
// ended. Code is a word for programs, such as spawn_no_result.
type ErrorEvent struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

func (InitEvent) kind() EventKind          { return EventInit }
func (SystemEvent) kind() EventKind        { return EventSystem }
func (AssistantTextEvent) kind() EventKind { return EventAssistantText }
func (ToolUseEvent) kind() EventKind       { return EventToolUse }
func (ToolResultEvent) kind() EventKind    { return EventToolResult }
func (ToolProgressEvent) kind() EventKind  { return EventToolProgress }
func (PermitEvent) kind() EventKind        { return EventPermit }
func (UsageEvent) kind() EventKind         { return EventUsage }
func (ResultEvent) kind() EventKind        { return EventResult }
func (ErrorEvent) kind() EventKind         { return EventError }

// Terminal reports whether e ends its session.
func Terminal(e Event) bool { return e.kind() == EventResult || e.kind() == EventError }

// eventTypes has a value of each type.
var eventTypes = func() map[EventKind]reflect.Type {
	m := map[EventKind]reflect.Type{}
	for _, e := range []Event{InitEvent{}, SystemEvent{}, AssistantTextEvent{}, ToolUseEvent{}, ToolResultEvent{}, ToolProgressEvent{}, PermitEvent{}, UsageEvent{}, ResultEvent{}, ErrorEvent{}} {
		m[e.kind()] = reflect.TypeOf(e)
	}
	return m
}()

// MarshalEvent returns an event as one line of JSON whose key "kind" says what it is.
func MarshalEvent(e Event) ([]byte, error) {
	if e == nil {
		return nil, types.Errorf(types.ErrInvalid, "MarshalEvent", "", "there is no event")
	}
	body, err := json.Marshal(e)
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "MarshalEvent", string(e.kind()), "%w", err)
	}
	head := []byte(`{"kind":"` + string(e.kind()) + `"`)
	if bytes.Equal(body, []byte("{}")) {
		return append(head, '}'), nil
	}
	return append(append(head, ','), body[1:]...), nil
}

// UnmarshalEvent is the reverse of MarshalEvent. A kind that is not known is NOT_FOUND, so that a reader
// can skip what newer programs write; anything else that is wrong is INVALID.
func UnmarshalEvent(line []byte) (Event, error) {
	var head struct {
		Kind EventKind `json:"kind"`
	}
	if err := json.Unmarshal(line, &head); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "UnmarshalEvent", "", "not an event: %w", err)
	}
	t, ok := eventTypes[head.Kind]
	if !ok {
		return nil, types.Errorf(types.ErrNotFound, "UnmarshalEvent", string(head.Kind), "there is no such kind of event")
	}
	v := reflect.New(t)
	if err := json.Unmarshal(line, v.Interface()); err != nil {
		return nil, types.Errorf(types.ErrInvalid, "UnmarshalEvent", string(head.Kind), "%w", err)
	}
	return v.Elem().Interface().(Event), nil
}
