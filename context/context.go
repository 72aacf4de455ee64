package context

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"

	"rnix/types"
)

// Context is one conversation. Its fields are set when it is made or guarded by mu; other packages
// reach it through the Manager.
type Context struct {
	ID types.CtxID
	// MaxSize is the largest number of messages; 0 = no limit. An append beyond it fails with
	// RESOURCE_EXHAUSTED and changes nothing.
	MaxSize int

	mu           sync.RWMutex
	SystemPrompt string // +checklocks:mu
	// Only ever appended to, or replaced as a whole.
	Messages []Message // +checklocks:mu
	// The same messages, as JSON.
	encoded encoding // +checklocks:mu
	// Grows when Messages is replaced.
	generation uint64 // +checklocks:mu
	// How often the conversation was made shorter.
	compactions int // +checklocks:mu
	// An estimate over Messages.
	tokens int // +checklocks:mu
	// What is attached to Messages; see Most.
	images int // +checklocks:mu
	// Of documents.
	pages int // +checklocks:mu
}

// PromptResult is a snapshot of a conversation: what is sent to a model. Its slices are shared with
// the conversation and must not be changed.
type PromptResult struct {
	SystemPrompt string
	Messages     []Message
	// Encoded is Messages as the elements of a JSON array, separated by commas, without the
	// brackets, in pieces. While Generation stays the same, the bytes of an earlier snapshot are a
	// prefix of those of a later one.
	Encoded    [][]byte
	Generation uint64
	// Tokens estimates the size of SystemPrompt and Messages together.
	Tokens int
	// Images are those that are attached, Pages those of documents, at most; see Most.
	Images, Pages int
}

// NewPrompt returns messages as they are sent to a model, of no conversation that a Manager has. A message that JSON cannot hold is INVALID.
func NewPrompt(system string, ms []Message) (*PromptResult, error) {
	c := Context{}
	c.mu.Lock()
	c.SystemPrompt = system
	err := c.replaceLocked(ms)
	c.mu.Unlock()
	if err != nil {
		return nil, err
	}
	return c.prompt(), nil
}

// EncodedLen returns the number of bytes in Encoded.
func (p *PromptResult) EncodedLen() int {
	n := 0
	for _, c := range p.Encoded {
		n += len(c)
	}
	return n
}

// append adds messages, all or none.
func (c *Context) append(ms ...Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.MaxSize > 0 && len(c.Messages)+len(ms) > c.MaxSize {
		return ctxErr(types.ErrExhausted, "CtxWrite", c.ID, "full: it holds at most %d messages", c.MaxSize)
	}
	mark, tokens, images, pages := c.encoded.mark(), 0, 0, 0
	for i := range ms {
		if err := c.encoded.add(&ms[i]); err != nil {
			c.encoded.back(mark)
			return ctxErr(types.ErrInvalid, "CtxWrite", c.ID, "message: %w", err)
		}
		tokens += ms[i].tokens()
		i, p := ms[i].shows()
		images, pages = images+i, pages+p
	}
	c.tokens, c.images, c.pages = c.tokens+tokens, c.images+images, c.pages+pages
	c.Messages = append(c.Messages, ms...)
	return nil
}

// replace puts ms in the place of all messages, or changes nothing if one cannot be encoded.
func (c *Context) replace(ms []Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	err := c.replaceLocked(ms)
	if err == nil {
		c.compactions++
	}
	return err
}

// set puts m in the place of the n-th message, from 1.
func (c *Context) set(n int, m Message) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if n < 1 || n > len(c.Messages) {
		return ctxErr(types.ErrInvalid, "CtxWrite", c.ID, "no message %d: there are %d", n, len(c.Messages))
	}
	ms := slices.Clone(c.Messages)
	ms[n-1] = m
	return c.replaceLocked(ms)
}

// +checklocks:c.mu
func (c *Context) replaceLocked(ms []Message) error {
	var enc encoding
	tokens, images, pages := 0, 0, 0
	for i := range ms {
		if err := enc.add(&ms[i]); err != nil {
			return ctxErr(types.ErrInvalid, "CtxWrite", c.ID, "message: %w", err)
		}
		tokens += ms[i].tokens()
		i, p := ms[i].shows()
		images, pages = images+i, pages+p
	}
	c.Messages, c.encoded, c.tokens, c.images, c.pages = ms, enc, tokens, images, pages
	c.generation++
	return nil
}

func (c *Context) prompt() *PromptResult {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return &PromptResult{
		SystemPrompt: c.SystemPrompt,
		Messages:     c.Messages[:len(c.Messages):len(c.Messages)],
		Encoded:      c.encoded.snapshot(),
		Generation:   c.generation,
		Tokens:       c.tokens + EstimateTokens(c.SystemPrompt),
		Images:       c.images,
		Pages:        c.pages,
	}
}

func (c *Context) summary() string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	by := map[Role]int{}
	for i := range c.Messages {
		by[c.Messages[i].Role]++
	}
	return fmt.Sprintf("messages %d (user %d, assistant %d, tool %d), about %d tokens, %d bytes, system prompt %d bytes, %d compactions",
		len(c.Messages), by[RoleUser], by[RoleAssistant], by[RoleTool],
		c.tokens+EstimateTokens(c.SystemPrompt), c.encoded.len(), len(c.SystemPrompt), c.compactions)
}

func ctxErr(code types.ErrCode, op string, cid types.CtxID, format string, args ...any) error {
	return types.Errorf(code, op, fmt.Sprintf("context %d", cid), format, args...)
}

// MarshalJSON writes the conversation for people and tools.
func (c *Context) MarshalJSON() ([]byte, error) {
	p := c.prompt()
	return json.Marshal(struct {
		ID           types.CtxID `json:"id"`
		SystemPrompt string      `json:"system_prompt"`
		Messages     []Message   `json:"messages"`
	}{c.ID, p.SystemPrompt, p.Messages})
}
