package llm

import (
	"context"
	"fmt"
	"math"
	"slices"
	"sync"
	"time"

	"rnix/vfs"
)

// defaultGate is how many calls one provider gets at once.
const defaultGate = 4

// Gate lets a bounded number of calls run at once. The others wait, visibly (EventWait), in the order
// in which they came. The errors of calls that were cut off on their way say so (vfs.CutOff).
type Gate struct {
	LLMDriver // Info
	*slots
}

// slots are the places of the calls that run at once. Gates of one provider may share them.
type slots struct {
	most int
	mu   sync.Mutex // leaf
	// +checklocks:mu
	running int
	// In the order in which they came.
	// +checklocks:mu
	queue []*queued
}

// queued is a call that waits at a gate.
type queued struct {
	moved chan int // how many are before it; -1 = it has a place. It holds the last word only.
	told  int      // the number that it was told last; the gate's mu guards it
	since time.Time
}

// NoLimit is the number of calls at once of a gate at which nothing waits: it only counts them.
const NoLimit = math.MaxInt

// Traffic is what is at a gate now.
type Traffic struct {
	Most    int // calls at once, or NoLimit
	Running int
	Waiting int
	Oldest  time.Time // since when the first of those waits; zero = none does
}

// NewGate puts a gate before a driver: n calls at once, 4 if n is 0 or less. Put it inside Retry, so
// that no call holds a place while it waits for a rate limit.
func NewGate(driver LLMDriver, n int) *Gate {
	if n <= 0 {
		n = defaultGate
	}
	return &Gate{LLMDriver: driver, slots: &slots{most: n}}
}

// Over returns a gate before another driver whose calls count with those of g.
func (g *Gate) Over(driver LLMDriver) *Gate { return &Gate{LLMDriver: driver, slots: g.slots} }

// Traffic returns what is at the gate now.
func (g *Gate) Traffic() Traffic { return g.traffic() }

func (g *slots) traffic() Traffic {
	g.mu.Lock()
	defer g.mu.Unlock()
	t := Traffic{Most: g.most, Running: g.running, Waiting: len(g.queue)}
	if t.Waiting > 0 {
		t.Oldest = g.queue[0].since
	}
	return t
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
		defer g.leave()
		return counted(ctx, g.LLMDriver, req, emit)
	}), nil
}

// enter returns when the call has a place.
func (g *Gate) enter(ctx context.Context, emit func(StreamEvent)) error {
	if err := vfs.Ended(ctx, "Call", g.Info().Name); err != nil {
		return err
	}
	q, before := g.take()
	if q == nil {
		return nil
	}
	g.show(emit, before)
	defer emit(StreamEvent{Type: EventWait})
	for {
		select {
		case before = <-q.moved:
			if before < 0 {
				return nil
			}
			g.show(emit, before)
		case <-ctx.Done():
			g.desert(q)
			return vfs.Ended(ctx, "Call", g.Info().Name)
		}
	}
}

// take takes a place, or one in the queue behind so many others.
func (g *slots) take() (q *queued, before int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.running < g.most {
		g.running++
		return nil, 0
	}
	q = &queued{moved: make(chan int, 1), told: len(g.queue), since: time.Now()}
	g.queue = append(g.queue, q)
	return q, q.told
}

// show says how many calls are before one that waits.
func (g *Gate) show(emit func(StreamEvent), before int) {
	emit(StreamEvent{Type: EventWait, Text: fmt.Sprintf("%d before it in the queue of %s (%d at once)", before, g.Info().Name, g.most)})
}

// leave gives a place back, to the first of those that wait.
func (g *slots) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.queue) == 0 {
		g.running--
		return
	}
	g.queue[0].tell(-1)
	g.queue = slices.Delete(g.queue, 0, 1)
	g.movedLocked(0)
}

// desert takes a call that has ended out of the queue, or gives back the place that it was given.
func (g *slots) desert(q *queued) {
	g.mu.Lock()
	i := slices.Index(g.queue, q)
	if i >= 0 {
		g.queue = slices.Delete(g.queue, i, i+1)
		g.movedLocked(i)
	}
	g.mu.Unlock()
	if i < 0 {
		g.leave()
	}
}

// nearby is how many calls of a queue are told of each that goes before them. Those behind are told when half of those
// before them have gone: a queue of a thousand must not say a million things.
const nearby = 8

// movedLocked tells the calls from the i-th of the queue on how many are before them now.
//
// +checklocks:g.mu
func (g *slots) movedLocked(i int) {
	for ; i < len(g.queue); i++ {
		if q := g.queue[i]; i < nearby || i <= q.told/2 {
			q.told = i
			q.tell(i)
		}
	}
}

// tell puts a word in the place of one that was not taken. Its callers hold the lock of the gate.
func (q *queued) tell(before int) {
	select {
	case <-q.moved:
	default:
	}
	q.moved <- before
}
