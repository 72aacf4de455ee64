package loop

import (
	"encoding/json"
	"strconv"

	rnixctx "rnix/context"
)

// Head is the part of a request that stays the same from step to step; only a skill changes the system prompt. Its fields are fields
// of the model device's request (llm.LLMRequest), which the kernel does not import; internal/archtest
// compares the two.
type Head struct {
	Intent       string `json:"intent,omitempty"`
	SystemPrompt string `json:"system_prompt,omitempty"`
	Model        string `json:"model,omitempty"`
	MaxTurns     int    `json:"max_turns,omitempty"`
	Effort       string `json:"reasoning_effort,omitempty"`
	Session      string `json:"session,omitempty"`
	WorkDir      string `json:"work_dir,omitempty"`
	Aside        bool   `json:"aside,omitempty"`
}

// ToolSpec is a tool as it is offered to the model, an element of the request's "tools".
type ToolSpec struct {
	Name        string          `json:"name"`
	Description string          `json:"description"`
	Schema      json.RawMessage `json:"input_schema"`
}

// Response is what the loop needs of a model device's answer (llm.LLMResponse). The same test compares
// it.
type Response struct {
	Content    string             `json:"content"`
	ToolCalls  []rnixctx.ToolCall `json:"tool_calls,omitempty"`
	Blocks     []rnixctx.Block    `json:"reasoning_blocks,omitempty"`
	StopReason string             `json:"stop_reason,omitempty"`
	Provider   string             `json:"provider,omitempty"`
	Model      string             `json:"model,omitempty"`
	Usage      Usage              `json:"usage"`
	CostUSD    float64            `json:"cost_usd,omitempty"`
	Done       []Done             `json:"done,omitempty"`
	// Metered is what the programs of the process have taken since the answer before, whose requests count by themselves; nil = the usage is that of
	// the answer. The host says it.
	Metered *Cost `json:"-"`
}

// Done is how a call of the answer ended that whoever answered has run itself: an agent's whole command
// line, with tools of its own.
type Done struct {
	ID         string `json:"id"`
	Output     string `json:"output,omitempty"`
	IsError    bool   `json:"is_error,omitempty"`
	DurationMs int64  `json:"duration_ms,omitempty"`
	Reads      bool   `json:"reads,omitempty"` // it has changed nothing
}

// Usage counts the tokens of one answer; the parts do not overlap.
type Usage struct {
	Input      int  `json:"input_tokens"`
	Output     int  `json:"output_tokens"`
	CacheRead  int  `json:"cache_read_tokens,omitempty"`
	CacheWrite int  `json:"cache_write_tokens,omitempty"`
	Estimated  bool `json:"estimated,omitempty"`
}

// request is the document that is written to the model device. It grows with the conversation: what
// was written once is not encoded or copied again while the conversation is only appended to.
type request struct {
	said       Head
	head       []byte // said, encoded
	specs      []byte // the encoded tools, shared with other processes; may be empty
	buf        []byte // head and the messages so far, without the closing brackets
	done       int    // bytes of the encoded messages that are in buf
	generation uint64
	answer     int // tokens that the answer may have, as buf says it; 0 = it does not
}

func newRequest(h Head, specs []byte) (*request, error) {
	b, err := json.Marshal(h)
	return &request{said: h, head: b, specs: specs}, err
}

// tell changes the system prompt, and reports whether it was another one.
func (r *request) tell(system string) (changed bool) {
	if r.said.SystemPrompt == system {
		return false
	}
	r.said.SystemPrompt = system
	r.head, _ = json.Marshal(r.said) // it has strings and numbers only
	r.buf = nil
	return true
}

// offer changes the tools, and reports whether they are others: they are compared by where they lie, since they are not changed.
func (r *request) offer(specs []byte) (changed bool) {
	if len(specs) == len(r.specs) && (len(specs) == 0 || &specs[0] == &r.specs[0]) {
		return false
	}
	r.specs, r.buf = specs, nil
	return true
}

// begin starts the document: the head, the tools, and an open list of messages.
func (r *request) begin(room int) {
	r.buf = append(make([]byte, 0, len(r.head)+len(r.specs)+room), r.head[:len(r.head)-1]...)
	comma := func() {
		if len(r.buf) > 1 {
			r.buf = append(r.buf, ',')
		}
	}
	if len(r.specs) > 0 {
		comma()
		r.buf = append(append(r.buf, `"tools":`...), r.specs...)
	}
	if r.answer > 0 {
		comma()
		r.buf = strconv.AppendInt(append(r.buf, `"max_tokens":`...), int64(r.answer), 10)
	}
	comma()
	r.buf = append(r.buf, `"messages":[`...)
}

// size returns how many bytes the document for a prompt has, but for a few.
func (r *request) size(p *rnixctx.PromptResult) int {
	return len(r.head) + len(r.specs) + p.EncodedLen() + 64
}

// bytes returns the document for a prompt. It is valid until the next call. answer bounds the answer, in
// tokens; 0 = nothing does.
func (r *request) bytes(p *rnixctx.PromptResult, answer int) []byte {
	if r.buf == nil || r.generation != p.Generation || r.answer != answer {
		r.answer = answer
		r.begin(p.EncodedLen() + 64)
		r.done, r.generation = 0, p.Generation
	}
	skip := r.done
	for _, c := range p.Encoded {
		if skip >= len(c) {
			skip -= len(c)
			continue
		}
		r.buf = append(r.buf, c[skip:]...)
		r.done += len(c) - skip
		skip = 0
	}
	return append(r.buf, "]}"...)
}
