package llm

import (
	"context"
	"time"

	"rnix/vfs"
)

// defaultGate is how many calls one provider gets at once.
const defaultGate = 4

// queueGuess is how long a place in the queue is announced to take, for want of knowledge.
const queueGuess = 30 * time.Second

// Gate lets a bounded number of calls run at once. The others wait, visibly (EventWait), in the order
// in which they came. The errors of calls that were cut off on their way say so (vfs.CutOff).
type Gate struct {
	LLMDriver // Info
	places    chan struct{}
}

// NewGate puts a gate before a driver: n calls at once, 4 if n is 0 or less. Put it inside Retry, so
// that nobody holds a place while waiting for a rate limit.
func NewGate(driver LLMDriver, n int) *Gate {
	if n <= 0 {
		n = defaultGate
	}
	return &Gate{LLMDriver: driver, places: make(chan struct{}, n)}
}

// Call performs one completion.
func (g *Gate) Call(ctx context.Context, req LLMRequest) (*LLMResponse, error) {
	return attempt(ctx, g, req, func(StreamEvent) {})
}

// Stream performs one completion and delivers it in pieces.
func (g *Gate) Stream(ctx context.Context, req LLMRequest) (<-chan StreamEvent, error) {
	return Produce(ctx, func(ctx context.Context, emit func(StreamEvent)) (*LLMResponse, error) {
		if err := g.enter(ctx, emit); err != nil {
			return nil, err
		}
		defer func() { <-g.places }()
		return counted(ctx, g.LLMDriver, req, emit)
	}), nil
}

func (g *Gate) enter(ctx context.Context, emit func(StreamEvent)) error {
	if err := vfs.Ended(ctx, "Call", g.Info().Name); err != nil {
		return err
	}
	select {
	case g.places <- struct{}{}:
		return nil
	default:
	}
	emit(StreamEvent{Type: EventWait, Until: time.Now().Add(queueGuess), Text: "queue"})
	defer emit(StreamEvent{Type: EventWait})
	select {
	case g.places <- struct{}{}:
		return nil
	case <-ctx.Done():
		return vfs.Ended(ctx, "Call", g.Info().Name)
	}
}
