package kernel

import (
	"context"
	"errors"
	"sync"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// compactWish is the wish of a person that the conversation be compacted.
type compactWish struct {
	// One record about it after the other, so that the latest one says how it is. It is taken before mu.
	marking sync.Mutex

	mu   sync.Mutex
	last uint64    // +checklocks:mu
	wish loop.Wish // +checklocks:mu
}

// set takes a new wish, which goes before an earlier one; nil = there is none.
func (w *compactWish) set(focus *string) {
	if focus == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.last++
	w.wish = loop.Wish{Number: w.last, Focus: *focus}
}

// met takes back the wish with this number, and reports whether a later one is left.
func (w *compactWish) met(number uint64) (left bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.wish.Number <= number {
		w.wish = loop.Wish{}
	}
	return w.wish.Number > 0
}

func (w *compactWish) get() loop.Wish {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.wish
}

// Compact has the conversation of a process compacted before its next question, durably: a model sums it up if it can, and focus is kept above all. It does not
// wait for that. One that is no agent is INVALID; one whose record is closed already, or that is not there any more, is NOT_FOUND, and Passing.
func (k *KernelImpl) Compact(pid types.PID, focus string) error {
	p, err := k.table.lookup("Compact", pid)
	if err != nil {
		return err
	}
	return wantCompact(p, focus)
}

// wantCompact writes a wish into the record.
func wantCompact(p *Process, focus string) error {
	p.compact.marking.Lock()
	defer p.compact.marking.Unlock()
	switch {
	case p.opts.Body != nil:
		return notCompacted(p, types.ErrInvalid, ErrNoConversation)
	case p.State() >= types.StateZombie:
		return notCompacted(p, types.ErrNotFound, ErrNoProcess)
	}
	if err := mark(p, step.Marker{Name: step.MarkerCompact, PID: p.PID, Text: focus}); err != nil {
		if p.State() >= types.StateZombie { // its record was closed meanwhile
			return notCompacted(p, types.ErrNotFound, ErrNoProcess)
		}
		return err
	}
	p.compact.set(&focus)
	return nil
}

func notCompacted(p *Process, code types.ErrCode, why error) error {
	return &types.SyscallError{Syscall: "Compact", PID: p.PID, Code: code, Err: why}
}

// ErrNoConversation says that a process has no model.
var ErrNoConversation = errors.New("it is no agent: it has no conversation")

// compactor is what the loop of a process sees of compactions.
type compactor struct{ h host }

var _ loop.Compactor = compactor{}

// Wanted implements loop.Compactor.
func (c compactor) Wanted() loop.Wish { return c.h.p.compact.get() }

// Compact implements loop.Compactor.
func (c compactor) Compact(ms []rnixctx.Message, report rnixctx.Compaction, took *step.Answer, met uint64) error {
	h := c.h
	text := report.String()
	if ms == nil {
		text = "nothing was compacted: " + report.Failed
	} else if err := h.k.ctxMgr.Replace(h.p.CtxID, ms); err != nil {
		return err
	}
	h.p.compact.marking.Lock()
	defer h.p.compact.marking.Unlock()
	detail, err := step.CompactionDetail(ms, took, h.p.compact.met(met))
	if err != nil {
		return err
	}
	h.Emit(event.Event{Kind: event.Compacted, Text: text})
	if report.Failed != "" {
		h.Emit(event.Event{Kind: event.LogLine, Name: "warning", Text: "compaction: " + text})
	}
	m := step.Marker{Name: step.MarkerCompaction, PID: h.p.PID, Text: text, Detail: detail}
	if took != nil { // it is paid for
		return mark(h.p, m)
	}
	return h.p.rec.Add(step.Record{Kind: step.KindMarker, Marker: &m})
}

// Aside implements loop.Compactor.
func (c compactor) Aside(ctx context.Context, request []byte) (*loop.Response, error) {
	h := c.h
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer h.p.onPause(func() { cancel(loop.ErrHeld) })()
	resp, err := exchange(ctx, h, request, h.k.fds.hearWaits)
	if err != nil && errors.Is(context.Cause(ctx), loop.ErrHeld) {
		return nil, heldBack(err)
	}
	return resp, err
}

// hearWaits takes what a model waits for, and nothing of what it says: that is no part of the conversation.
func (c *descriptors) hearWaits(p *Process, f vfs.VFSFile) (done func()) {
	n, ok := f.(vfs.StreamNotifier)
	if !ok {
		return func() {}
	}
	n.NotifyStream(func(part vfs.StreamPart) {
		c.doing.pulse.lives(p)
		if part.Kind == "wait" {
			c.doing.waitOutside(p, part)
		}
	})
	return func() { n.NotifyStream(nil) }
}

// planOf returns the plan of a process as it stands.
func planOf(p *Process) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.plan
}
