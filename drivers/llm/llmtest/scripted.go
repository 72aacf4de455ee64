package llmtest

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	rnixctx "rnix/context"
	"rnix/drivers/llm"
	"rnix/types"
)

// Scripted is a model in memory. It honours contexts, works in a synctest bubble, and remembers what
// it was asked. Each session has a place of its own in the list of turns. Safe for concurrent use.
type Scripted struct {
	info   llm.DriverInfo
	turn   func(n int, req llm.LLMRequest) Turn
	calls  atomic.Int64 // for call ids
	active atomic.Int64

	mu       sync.Mutex
	requests []llm.LLMRequest // +checklocks:mu
	// +checklocks:mu
	next map[string]int // by session
	// +checklocks:mu
	peak int64 // the most calls at once
}

var _ llm.LLMDriver = (*Scripted)(nil)

// NewScripted returns a model that takes the turns in order, in each session from the first. Being
// asked more often than that is an INVALID error that says so.
func NewScripted(turns ...Turn) *Scripted {
	turns = slices.Clone(turns)
	return NewScriptedFunc(func(n int, _ llm.LLMRequest) Turn {
		if n >= len(turns) {
			return Turn{Err: types.Errorf(types.ErrInvalid, "Call", "", "the script has %d turns and was asked for turn %d", len(turns), n+1)}
		}
		return turns[n]
	})
}

// NewScriptedFunc returns a model that asks turn what to do. n counts the requests of one session from
// 0. turn is called from several goroutines.
func NewScriptedFunc(turn func(n int, req llm.LLMRequest) Turn) *Scripted {
	return &Scripted{
		info: llm.DriverInfo{Name: "scripted", Driver: "scripted", Model: "scripted-1", NativeTools: true, ContextWindow: 200_000},
		turn: turn,
		next: map[string]int{},
	}
}

// WithInfo sets what the model says of itself, and returns it. Call it before the first use.
func (s *Scripted) WithInfo(info llm.DriverInfo) *Scripted { s.info = info; return s }

// Info describes the model.
func (s *Scripted) Info() llm.DriverInfo { return s.info }

// Requests returns what the model was asked, in order.
func (s *Scripted) Requests() []llm.LLMRequest {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// Peak returns the largest number of calls that were under way at once.
func (s *Scripted) Peak() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return int(s.peak)
}

// Call performs a turn.
func (s *Scripted) Call(ctx context.Context, req llm.LLMRequest) (*llm.LLMResponse, error) {
	events, err := s.Stream(ctx, req)
	if err != nil {
		return nil, err
	}
	return llm.Collect(events)
}

// Stream performs a turn in pieces.
func (s *Scripted) Stream(ctx context.Context, req llm.LLMRequest) (<-chan llm.StreamEvent, error) {
	s.mu.Lock()
	n := s.next[req.Session]
	s.next[req.Session] = n + 1
	s.requests = append(s.requests, req)
	s.peak = max(s.peak, s.active.Add(1))
	s.mu.Unlock()
	cancel := func() {}
	if req.TimeoutMs > 0 {
		ctx, cancel = context.WithTimeout(ctx, time.Duration(req.TimeoutMs)*time.Millisecond)
	}
	return llm.Produce(ctx, func(ctx context.Context, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
		defer cancel()
		defer s.active.Add(-1)
		return s.play(ctx, s.turn(n, req), req, emit)
	}), nil
}

func (s *Scripted) play(ctx context.Context, t Turn, req llm.LLMRequest, emit func(llm.StreamEvent)) (*llm.LLMResponse, error) {
	if err := pause(ctx, t.Delay); err != nil {
		return nil, err
	}
	if t.Reasoning != "" {
		emit(llm.StreamEvent{Type: llm.EventReasoning, Text: t.Reasoning})
	}
	for {
		for _, p := range pieces(t.Text, t.Pieces) {
			if err := pause(ctx, t.Pause); err != nil {
				return nil, err
			}
			emit(llm.StreamEvent{Type: llm.EventText, Text: p})
		}
		if !t.Endless || t.Text == "" {
			break
		}
	}
	switch {
	case t.Hang, t.Endless:
		<-ctx.Done()
		return nil, ctx.Err()
	case t.Cut:
		return nil, types.Errorf(types.ErrUnavailable, "Call", "", "stream was cut")
	case t.Err != nil:
		return nil, t.Err
	}
	return s.response(t, req), ctx.Err()
}

func (s *Scripted) response(t Turn, req llm.LLMRequest) *llm.LLMResponse {
	r := &llm.LLMResponse{
		Content: t.Text, Reasoning: t.Reasoning, Blocks: t.Blocks, StopReason: t.Stop, Usage: t.Usage, CostUSD: t.CostUSD,
		Provider: s.info.Name, Model: s.info.Model,
	}
	if req.Model != "" {
		r.Model = req.Model
	}
	for _, c := range t.ToolCalls {
		if c.ID == "" {
			c.ID = callID(int(s.calls.Add(1)))
		}
		r.ToolCalls = append(r.ToolCalls, c)
	}
	if r.StopReason == "" {
		r.StopReason = "end_turn"
		if len(r.ToolCalls) > 0 {
			r.StopReason = "tool_use"
		}
	}
	if r.Usage == (llm.Usage{}) {
		r.Usage = llm.Usage{Input: promptTokens(req), Output: rnixctx.EstimateTokens(t.Text) + 8*len(t.ToolCalls), Estimated: true}
	}
	r.TokensUsed = r.Usage.Total()
	return r
}

func promptTokens(req llm.LLMRequest) int {
	n := rnixctx.EstimateTokens(req.SystemPrompt) + rnixctx.EstimateTokens(req.Intent)
	for _, m := range req.Messages {
		n += 4 + rnixctx.EstimateTokens(m.Content)
	}
	return n
}

// pause waits for d, or for the end of ctx.
func pause(ctx context.Context, d time.Duration) error {
	if d > 0 {
		t := time.NewTimer(d)
		defer t.Stop()
		select {
		case <-t.C:
		case <-ctx.Done():
		}
	}
	return ctx.Err()
}
