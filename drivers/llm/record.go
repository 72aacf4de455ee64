package llm

import (
	"context"
	"time"

	"rnix/types"
)

// Exchange is what Record tells of one call. It holds nothing that was said.
type Exchange struct {
	Session    string
	Provider   string // who answered, or was asked
	Model      string // as the provider names it; as it was asked for, if there was no answer
	Start      time.Time
	FirstPiece time.Duration // until the first text or reasoning; 0 if none came
	Waited     time.Duration // of Total, in queues and for rate limits
	Total      time.Duration
	Messages   int // of the request
	Tools      int
	ToolCalls  int // of the answer
	StopReason string
	Usage      Usage
	CostUSD    float64
	Code       types.ErrCode // why there was no answer; "" if there was one
}

// Record tells what calls cost, how long they took and how they ended.
type Record struct {
	LLMDriver // Info
	tell      func(Exchange)
}

// NewRecord calls tell after each call of driver, from the goroutine of the call and before its last
// event. tell must not block; it is called from several goroutines.
func NewRecord(driver LLMDriver, tell func(Exchange)) *Record { return &Record{driver, tell} }

// Call performs one completion.
func (r *Record) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, r, req, func(StreamEvent) {})
}

// Stream performs one completion and delivers it in pieces.
func (r *Record) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		x := Exchange{Session: req.Session, Provider: r.Info().Name, Model: req.Model, Start: time.Now(), Messages: len(req.Messages), Tools: len(req.Tools)}
		if x.Model == "" {
			x.Model = r.Info().Model
		}
		var waits time.Time // since when; zero = it does not
		resp, err := attempt(ctx, r.LLMDriver, req, func(ev StreamEvent) {
			switch {
			case ev.waits() && waits.IsZero():
				waits = time.Now()
			case ev.Type == EventWait && !ev.waits() && !waits.IsZero():
				x.Waited += time.Since(waits)
				waits = time.Time{}
			case ev.Type != EventWait && x.FirstPiece == 0:
				x.FirstPiece = time.Since(x.Start)
			}
			emit(ev)
		})
		if !waits.IsZero() {
			x.Waited += time.Since(waits)
		}
		x.Total, x.Code = time.Since(x.Start), types.CodeOf(err)
		if resp != nil {
			x.StopReason, x.Usage, x.CostUSD, x.ToolCalls = resp.StopReason, resp.Usage, resp.CostUSD, len(resp.ToolCalls)
			if resp.Model != "" {
				x.Model = resp.Model
			}
			if resp.Provider != "" {
				x.Provider = resp.Provider
			}
		}
		r.tell(x)
		return resp, err
	}), nil
}
