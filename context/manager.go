package context

import (
	"encoding/json"
	"slices"
	"sync/atomic"

	"rnix/internal/redact"
	"rnix/types"
	"rnix/xsync"
)

// Manager owns the conversations of a kernel. Safe for concurrent use. Calls on one conversation are
// serialised, so appends of several threads keep one order.
type Manager struct {
	contexts xsync.Numbered[types.CtxID, Context]
	next     atomic.Uint64
	secrets  *redact.Set // what is taken out of conversations; see Conceal
}

// NewManager returns a manager without conversations.
func NewManager() *Manager { return &Manager{} }

// CtxAlloc makes a conversation for at most size messages; 0 = no limit. A negative size is INVALID.
// The caller frees it with CtxFree.
func (m *Manager) CtxAlloc(size int) (types.CtxID, error) {
	if size < 0 {
		return 0, types.Errorf(types.ErrInvalid, "CtxAlloc", "", "size %d is negative", size)
	}
	c := &Context{ID: types.CtxID(m.next.Add(1)), MaxSize: size}
	m.contexts.Store(c.ID, c)
	return c.ID, nil
}

// CtxFree ends a conversation. A second call is NOT_FOUND.
func (m *Manager) CtxFree(cid types.CtxID) error {
	if m.contexts.Delete(cid) == nil {
		return ctxErr(types.ErrNotFound, "CtxFree", cid, "no such context")
	}
	return nil
}

func (m *Manager) get(op string, cid types.CtxID) (*Context, error) {
	if c := m.contexts.Load(cid); c != nil {
		return c, nil
	}
	return nil, ctxErr(types.ErrNotFound, op, cid, "no such context")
}

// SetSystemPrompt sets or replaces the system prompt.
func (m *Manager) SetSystemPrompt(cid types.CtxID, prompt string) error {
	c, err := m.get("SetSystemPrompt", cid)
	if err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.SystemPrompt = m.secrets.String(prompt)
	return nil
}

// AppendMessage appends a message of a role.
func (m *Manager) AppendMessage(cid types.CtxID, role Role, content string) error {
	return m.Append(cid, Message{Role: role, Content: content})
}

// AppendToolResult appends the answer to a tool call.
func (m *Manager) AppendToolResult(cid types.CtxID, toolCallID, content string) error {
	return m.Append(cid, Message{Role: RoleTool, Content: content, ToolCallID: toolCallID})
}

// Append appends messages, all or none. The caller keeps the invariant of Message; Legal checks it.
func (m *Manager) Append(cid types.CtxID, ms ...Message) error {
	c, err := m.get("CtxWrite", cid)
	if err != nil {
		return err
	}
	return c.append(ConcealedAll(ms, m.secrets)...)
}

// Replace puts ms in the place of all messages. The caller must not change ms afterwards.
func (m *Manager) Replace(cid types.CtxID, ms []Message) error {
	c, err := m.get("CtxWrite", cid)
	if err != nil {
		return err
	}
	return c.replace(ConcealedAll(ms, m.secrets))
}

// CtxWrite is the low-level write: data is one Message as JSON. With offset 0 it is appended; with an
// offset n > 0 it takes the place of the n-th message (from 1). Beyond the end is INVALID.
func (m *Manager) CtxWrite(cid types.CtxID, offset int, data []byte) error {
	c, err := m.get("CtxWrite", cid)
	if err != nil {
		return err
	}
	var msg Message
	if err := json.Unmarshal(data, &msg); err != nil {
		return ctxErr(types.ErrInvalid, "CtxWrite", cid, "not a message: %w", err)
	}
	if !slices.Contains([]Role{RoleSystem, RoleUser, RoleAssistant, RoleTool}, msg.Role) {
		return ctxErr(types.ErrInvalid, "CtxWrite", cid, "invalid role %q: want system, user, assistant or tool", msg.Role)
	}
	msg = msg.Concealed(m.secrets)
	if offset == 0 {
		return c.append(msg)
	}
	return c.set(offset, msg)
}

// CtxRead is the low-level read: a JSON array of at most length messages (all for 0 or less), from
// the offset-th on (from 0).
func (m *Manager) CtxRead(cid types.CtxID, offset, length int) ([]byte, error) {
	c, err := m.get("CtxRead", cid)
	if err != nil {
		return nil, err
	}
	ms := c.prompt().Messages
	if offset < 0 || offset > len(ms) {
		return nil, ctxErr(types.ErrInvalid, "CtxRead", cid, "no message %d: there are %d", offset, len(ms))
	}
	ms = ms[offset:]
	if length > 0 && length < len(ms) {
		ms = ms[:length]
	}
	if ms == nil {
		ms = []Message{}
	}
	return json.Marshal(ms)
}

// BuildPrompt returns what is to be sent to a model. Its cost does not grow with the conversation.
func (m *Manager) BuildPrompt(cid types.CtxID) (*PromptResult, error) {
	c, err := m.get("BuildPrompt", cid)
	if err != nil {
		return nil, err
	}
	return c.prompt(), nil
}

// GetContextSummary describes a conversation in one line, for /proc/<pid>/context.
func (m *Manager) GetContextSummary(cid types.CtxID) (string, error) {
	c, err := m.get("GetContextSummary", cid)
	if err != nil {
		return "", err
	}
	return c.summary(), nil
}

// Len returns the number of conversations.
func (m *Manager) Len() int { return m.contexts.Len() }
