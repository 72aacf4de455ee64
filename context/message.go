// Package context keeps the conversations of processes and assembles prompts from them. It is
// always imported as rnixctx.
//
// It owns the messages of each conversation and their encoded form; it knows no process, no model
// and no file. Messages are only ever appended (or replaced as a whole by a compaction), and each
// is encoded once, so that building a prompt costs the same at message 2,000 as at message 20 and
// its beginning stays byte for byte the same from step to step.
package context

import "encoding/json"

// Role says who speaks. Part of the on-disk format.
type Role string

// The roles.
const (
	RoleSystem    Role = "system"
	RoleUser      Role = "user"
	RoleAssistant Role = "assistant"
	RoleTool      Role = "tool"
)

// Message is one turn of a conversation. Part of the on-disk format.
//
// Invariant: every ToolCalls entry of an assistant message is answered by exactly one following
// message of role tool with its ID, before the next user or assistant message.
type Message struct {
	Role       Role       `json:"role"`
	Content    string     `json:"content"`
	ToolCallID string     `json:"tool_call_id,omitempty"` // role tool: which call this answers
	IsError    bool       `json:"is_error,omitempty"`     // role tool: the call failed
	ToolCalls  []ToolCall `json:"tool_calls,omitempty"`   // role assistant
	Reasoning  []Block    `json:"reasoning,omitempty"`    // role assistant: given back to the provider unchanged
	// Attachments are the images and documents of a user or of a tool's answer; Content names them.
	Attachments []Attachment `json:"attachments,omitempty"`
}

// ToolCall is a model's wish to run a tool.
type ToolCall struct {
	ID    string          `json:"id"`
	Name  string          `json:"name"`
	Input json.RawMessage `json:"input"` // as the model wrote it; valid JSON, or a JSON string holding what it wrote
	// ParseError says why the model's arguments could not be read; such a call is answered, not run.
	ParseError string `json:"parse_error,omitempty"`
}

// Block is an opaque piece of a provider's answer that must be sent back as it came, such as a
// signed reasoning block.
type Block struct {
	Provider string          `json:"provider"`
	Data     json.RawMessage `json:"data"`
}
