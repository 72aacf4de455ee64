package watch

import (
	"context"
	"maps"
	"time"

	"rnix/internal/event"
	"rnix/kernel"
	"rnix/types"
)

// pieceEvery is the least time between two looks at what models are saying: what they say meanwhile is one piece. It is more often than a screen can be read,
// and seldom enough for a slow terminal.
const pieceEvery = 25 * time.Millisecond

// hearing is what one client hears of what models say, besides the lines of the log. A nil one hears nothing. For one goroutine.
type hearing struct {
	kernel   Kernel
	listener *kernel.Listener
	heard    map[types.UUID]*kernel.Heard
	open     map[types.UUID]struct{} // may have said what was not heard
	due      bool                    // the listener was told of something
	next     time.Time               // of the next look
}

func newHearing(k Kernel) *hearing {
	return &hearing{kernel: k, listener: k.Listen(), heard: map[types.UUID]*kernel.Heard{}, open: map[types.UUID]struct{}{}}
}

func (h *hearing) close() {
	if h != nil {
		h.listener.Close()
	}
}

// of returns how far a process was heard.
func (h *hearing) of(id types.UUID) *kernel.Heard {
	x := h.heard[id]
	if x == nil {
		x = new(kernel.Heard)
		h.heard[id] = x
	}
	return x
}

// line takes note of an event of the log and returns it as the client gets it: a line without what was heard of it; nil = it has heard more than that.
func (h *hearing) line(e *event.Event) *event.Event {
	switch {
	case h == nil:
	case e.Kind == event.Exited:
		delete(h.heard, e.UUID)
	case e.Kind == event.LogLine && e.Answer != 0:
		line, ok := h.of(e.UUID).Line(e)
		if !ok {
			return nil
		}
		return &line
	}
	return e
}

// send sends what models have said behind what the client has heard, as far as it came before all events later than upTo.
func (h *hearing) send(f *filter, s *sink, upTo uint64) error {
	if h == nil || time.Now().Before(h.next) {
		return nil
	}
	h.due = false
	maps.Copy(h.open, h.listener.Spoke())
	if len(h.open) == 0 {
		return nil
	}
	for id := range h.open {
		if f.some && !f.ids[id] {
			delete(h.open, id) // not one of those that were asked for; a child that is born becomes one with its event, which comes first
			continue
		}
		said, more := h.kernel.Hear(id, h.of(id), upTo)
		for i := range said {
			if e := &said[i]; f.picks(e) {
				f.buf = event.AppendJSON(f.buf[:0], e)
				if err := s.send(0, e.Kind, f.buf); err != nil {
					return err
				}
			}
		}
		if !more {
			delete(h.open, id)
		}
	}
	h.next = time.Now().Add(pieceEvery)
	return nil
}

// wait waits for an event of the log, or until there may be something to hear and it is time to look.
func (h *hearing) wait(ctx context.Context, more <-chan struct{}) error {
	var spoke <-chan struct{}
	var due <-chan time.Time
	switch {
	case h == nil:
	case h.due || len(h.open) > 0:
		t := time.NewTimer(time.Until(h.next))
		defer t.Stop()
		due = t.C
	default:
		spoke = h.listener.More()
	}
	select {
	case <-more:
	case <-due:
	case <-spoke:
		h.due = true
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
