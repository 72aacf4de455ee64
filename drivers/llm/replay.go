package llm

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"sync"
	"time"

	rnixctx "rnix/context"
	"rnix/types"
	"rnix/vfs"
)

// ReplayDriver answers from a script, without any model. Every session goes through the script on its
// own, from the beginning; a conversation that is continued from elsewhere (a resume, a fork) goes on
// behind as many answers as it already holds.
type ReplayDriver struct {
	// ContextWindow is what Info says, in tokens; 0 = unknown. It is set before the first call.
	ContextWindow int

	name   string
	script *replayScript

	mu sync.Mutex
	// +checklocks:mu
	next map[string]replayPlace // by session
}

var _ LLMDriver = (*ReplayDriver)(nil)

// NewReplay reads the script at path. name is the provider's; empty means "replay". Its format is
// described at ParseReplay.
func NewReplay(name, path string) (*ReplayDriver, error) {
	src, err := os.ReadFile(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, types.Errorf(types.ErrNotFound, "Open", path, "no such script")
	}
	if err != nil {
		return nil, types.Errorf(types.ErrInvalid, "Open", path, "the script cannot be read: %w", err)
	}
	return ParseReplay(name, path, src)
}

// ParseReplay reads a script. path is the name in errors. All mistakes are reported at once, each with
// file, line and column.
//
//	version: "1"
//	responses:
//	  - content: Let me look.
//	    reasoning: The file must be read first.
//	    tool_calls:
//	      - name: read_file
//	        input: {path: go.mod}     # a text is taken as what the model wrote, valid or not
//	        id: call_1                # may be left out
//	    usage: {input_tokens: 120, output_tokens: 15, cached_input_tokens: 100}   # cached is a part of input
//	    stop_reason: tool_use         # may be left out
//	    delay: 200ms                  # before the answer
//	  - error: {code: RATE_LIMITED, message: slow down, retry_after: 2s}
//
// For several agents there are conversations in place of responses. The first that fits is played, and texts
// may refer to groups of its prompt and to results of calls; $${ stands for ${ there.
//
//	conversations:
//	  - system: You read one file         # a regular expression that the system prompt fits; may be left out
//	    prompt: 'Read (\S+)'              # likewise the first message
//	    responses:
//	      - tool_calls: [{name: read_file, input: {path: "${1}"}}]   # the first group; ${name} is a group with a name
//	      - content: "It says: ${result}"                            # of the last call; ${result.1} of the first
func ParseReplay(name, path string, src []byte) (*ReplayDriver, error) {
	s, err := sharedScript(path, src)
	if err != nil {
		return nil, err
	}
	return &ReplayDriver{name: cmp.Or(name, "replay"), script: s, next: map[string]replayPlace{}}, nil
}

// Info describes the driver. Its answers are those of the script, whatever they are asked to be.
func (d *ReplayDriver) Info() DriverInfo {
	n := d.script.longest()
	return DriverInfo{Name: d.name, Driver: "replay", Model: "replay", NativeTools: true, ContextWindow: d.ContextWindow, MaxAnswer: n, LeastAnswer: n}
}

// longest returns how many tokens a response of the script has at most: what it says of itself, prompt and
// all, or what would be counted.
func (s *replayScript) longest() int {
	most := 1
	for _, t := range append([]replayTalk{s.alone}, s.Conversations...) {
		for i := range t.Responses {
			r := &t.Responses[i]
			said := r.Usage.Input + r.Usage.Output
			n := 0
			for _, text := range r.texts() {
				n += len(text)
				if t.filled && said == 0 {
					n += len(reference().FindAllString(text, -1)) * maxFilled
				}
			}
			most = max(most, (n+3)/4, said)
		}
	}
	return most
}

// Call gives the next answer.
func (d *ReplayDriver) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, d, req, func(StreamEvent) {})
}

// Stream gives the next answer. When the script has come to its end, every call is an INVALID error
// that says so.
func (d *ReplayDriver) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	if err := vfs.Ended(ctx, "Call", d.name); err != nil {
		return nil, err
	}
	n, r, err := d.advance(req)
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		if err != nil {
			return nil, types.Errorf(types.ErrInvalid, "Call", d.name, "%w", err)
		}
		asked := ctx
		if req.TimeoutMs > 0 {
			limited, cancel := context.WithTimeout(ctx, time.Duration(min(req.TimeoutMs, int64(longest/time.Millisecond)))*time.Millisecond)
			defer cancel()
			ctx = limited
		}
		if r.Delay > 0 {
			sleep(ctx, time.Duration(r.Delay), nil)
		}
		if err := vfs.Ended(ctx, "Call", d.name); err != nil {
			if asked.Err() != nil { // nobody waits any more: who asks again, after a pause, gets it
				d.giveBack(req.Session, n)
			}
			return nil, err
		}
		return d.answer(n, r, req, emit)
	}), nil
}

// advance takes the next response of a session. The error says that there is none.
func (d *ReplayDriver) advance(req LLMRequest) (int, *replayResponse, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, known := d.next[req.Session]
	if !known {
		talk, err := d.script.talkFor(req)
		if err != nil {
			return 0, nil, err
		}
		at = replayPlace{talk, talk.behind(req.Messages)}
	}
	if at.next >= len(at.talk.Responses) {
		return at.next, nil, fmt.Errorf("the script %s has %s and was asked for response %d", d.script.path, types.Counted(len(at.talk.Responses), "response", "responses"), at.next+1)
	}
	d.next[req.Session] = replayPlace{at.talk, at.next + 1}
	r := &at.talk.Responses[at.next]
	if at.talk.filled {
		var err error
		if r, err = r.filled(at.talk.replacer(req)); err != nil {
			return at.next, nil, fmt.Errorf("the script %s, response %d: %w", d.script.path, at.next+1, err)
		}
	}
	return at.next, r, nil
}

// giveBack makes a response that was not given the next one again, unless a later one was taken.
func (d *ReplayDriver) giveBack(session string, n int) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if at := d.next[session]; at.next == n+1 {
		d.next[session] = replayPlace{at.talk, n}
	}
}

func (d *ReplayDriver) answer(n int, r *replayResponse, req LLMRequest, emit func(StreamEvent)) (*LLMResponse, error) {
	for _, piece := range []StreamEvent{{Type: EventReasoning, Text: r.Reasoning}, {Type: EventText, Text: r.Content}} {
		if piece.Text != "" {
			emit(piece)
		}
	}
	if r.Error != nil {
		return nil, r.Error.err(d.name)
	}
	resp := &LLMResponse{Content: r.Content, Reasoning: r.Reasoning, Provider: d.name, Model: cmp.Or(req.Model, "replay")}
	for i, c := range r.ToolCalls {
		resp.ToolCalls = append(resp.ToolCalls, makeCall(c.id(n, i), c.Name, c.input))
	}
	identify(resp.ToolCalls, req.Messages)
	resp.StopReason = stopOf(r.StopReason, resp.ToolCalls)
	u := r.Usage
	resp.settle(Usage{Input: u.Input - u.Cached, Output: u.Output, CacheRead: u.Cached}, true, promptBytes(req))
	return resp, nil
}

// promptBytes is the length of all texts of a request.
func promptBytes(req LLMRequest) int {
	n := len(req.SystemPrompt)
	for _, m := range conversation(req) {
		n += len(m.Content)
		for _, c := range m.ToolCalls {
			n += len(c.Name) + len(c.Input)
		}
	}
	return n
}

// behind returns the place in the responses after as many answers as the conversation holds.
func (t *replayTalk) behind(ms []rnixctx.Message) int {
	answers := 0
	for _, m := range ms {
		if m.Role == rnixctx.RoleAssistant {
			answers++
		}
	}
	for i, r := range t.Responses {
		if answers == 0 {
			return i
		}
		if r.Error == nil {
			answers--
		}
	}
	return len(t.Responses)
}
