package kernel

import (
	"slices"
	"time"

	"rnix/kernel/internal/loop"
	"rnix/types"
)

// Hand is a call that a process has in hand.
type Hand struct {
	Tool  string // empty = its model is asked
	Path  string // of the device
	Since time.Time
	Step  int
	Calls int // how many there are side by side; this is the oldest
}

// modelInHand is what waiting.tool says while the model is asked.
const modelInHand = "model"

// takeUp notes that a call begins. putDown must follow.
func takeUp(p *Process, a *loop.Action, now time.Time) *Hand {
	h := &Hand{Tool: a.Call.Name, Path: actionPath(a), Since: now}
	p.mu.Lock()
	defer p.mu.Unlock()
	h.Step = p.progress.Step
	p.hands = append(p.hands, h)
	return h
}

// putDown notes that a call has ended.
func putDown(p *Process, h *Hand) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if i := slices.Index(p.hands, h); i >= 0 {
		p.hands = slices.Delete(p.hands, i, i+1)
	}
}

// handLocked returns the oldest call in hand; nil if there is none.
//
// +checklocks:p.mu
func handLocked(p *Process) *Hand {
	switch {
	case p.state != types.StateRunning:
	case len(p.hands) > 0:
		h := *p.hands[0]
		h.Calls = len(p.hands)
		return &h
	case p.waits.tool == modelInHand:
		return &Hand{Path: p.modelPath, Since: p.waits.since, Step: p.progress.Step, Calls: 1}
	}
	return nil
}

// waitsLocked returns what a process that runs waits for. What keeps it from going on comes before what it does, as it still holds when that
// has ended; a question to a person comes before what goes by itself.
//
// +checklocks:p.mu
func waitsLocked(p *Process, shut bool, since time.Time) waiting {
	if shut {
		return waiting{reason: "paused", kind: types.SuspendPaused, since: since}
	}
	if bar, since := p.gate.Barred(); bar != "" && p.waits.kind != types.SuspendAsk {
		return waiting{reason: bar, since: since}
	}
	return p.waits
}

// reasonLocked returns that, and since when, in words that do not change with time.
//
// +checklocks:p.mu
func reasonLocked(p *Process, w waiting) (reason string, kind types.SuspendKind, from time.Time) {
	reason = orDefault(w.reason, w.tool)
	if !p.quiet.IsZero() && w.kind != types.SuspendPaused {
		return with("no progress", reason), w.kind, p.quiet
	}
	return reason, w.kind, w.since
}
