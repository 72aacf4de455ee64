package kernel

import (
	"context"
	"encoding/json"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// Self is a process as its own body sees it: what it keeps in its history, what it shows of itself, and the kernel around it. The zero
// Self is of no use.
type Self struct {
	k *KernelImpl
	p *Process
}

// Process returns the process.
func (s Self) Process() *Process { return s.p }

// Kernel returns the kernel that runs the process.
func (s Self) Kernel() *KernelImpl { return s.k }

// By returns the kernel as the process calls it.
func (s Self) By() By { return By{s.k, s.k.table.caller(s.p.PID)} }

// Context is the context of the process: that of Body.Run. It ends when the process is to end, and its cause says why.
func (s Self) Context() context.Context { return s.p.ctx }

// Stopping reports whether the kernel stops. What ends then has not ended: it is suspended on disk.
func (s Self) Stopping() bool { return s.k.stopped.Load() }

// Note keeps something of the body in the history of its process, durably, under a key: State.Notes has the
// latest of each key when the process goes on. A detail of nil takes it back. An error means that the
// record cannot be written any more: the body must end with it.
func (s Self) Note(key string, detail any) error {
	return s.mark("Note", step.MarkerNote, key, detail)
}

// mark writes a marker with a detail into the history, durably and at once, for a syscall.
func (s Self) mark(syscall, name, text string, detail any) error {
	b, err := json.Marshal(detail)
	if err != nil {
		return types.Errorf(types.ErrInternal, syscall, text, "encode: %w", err)
	}
	return s.Mark(step.Marker{Name: name, PID: s.p.PID, Text: text, Detail: b})
}

// Mark writes markers into the history, durably and at once. As with Note, an error ends a body.
func (s Self) Mark(ms ...step.Marker) error { return mark(s.p, ms...) }

func mark(p *Process, ms ...step.Marker) error {
	recs := make([]step.Record, len(ms))
	for i := range ms {
		recs[i] = step.Record{Kind: step.KindMarker, Marker: &ms[i]}
	}
	if err := p.rec.Add(recs...); err != nil {
		return err
	}
	return p.rec.Commit()
}

// Say writes a line into the log of the process; category is output, warning or the like.
func (s Self) Say(category, text string) {
	say(s.k.events, s.p, category, text)
}

func say(log *event.Log, p *Process, category, text string) {
	log.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: orDefault(category, "output"), Text: rnixctx.Elide(text, maxLine)})
}

// Tell appends an event about the process, whose PID and UUID it fills in.
func (s Self) Tell(e event.Event) {
	e.PID, e.UUID = s.p.PID, s.p.UUID
	s.k.events.Append(e)
}

// SetWait publishes what the body waits for, for people: empty = nothing. until may be zero.
func (s Self) SetWait(reason string, until time.Time) {
	s.k.doing.setWait(s.p, waiting{reason: reason, until: until})
}

// SetBusy publishes what the body does at the moment, as SetWait what it waits for.
func (s Self) SetBusy(what string) { s.k.doing.setWait(s.p, waiting{tool: what, since: time.Now()}) }

// SetProgress publishes the counters of the body.
func (s Self) SetProgress(pr Progress) {
	s.p.mu.Lock()
	s.p.progress = pr
	s.p.mu.Unlock()
	s.k.doing.touch(s.p)
}

// WaitIfPaused holds the caller while the process is paused. It returns the cause of ctx's end.
func (s Self) WaitIfPaused(ctx context.Context) error { return s.p.gate.Wait(ctx) }

// PausedSince returns since when a person has paused the process; false if nobody has.
func (s Self) PausedSince() (time.Time, bool) { return s.p.gate.Since() }

// Held reports whether the process is paused, or has to wait for something; see Hold.
func (s Self) Held() bool { return s.p.gate.Closed() }

// Revive lets a suspended history go on as a child of the process, whose body needs it. NOT_FOUND if there is none,
// CONFLICT if it runs already or has ended, unless a signal ended it: then it goes on where it was.
func (s Self) Revive(ctx context.Context, id types.UUID) (types.PID, error) {
	return s.k.cfg.Lifecycle.Revive(ctx, s.p, id)
}

// Dismiss ends a suspended history, and those below it, without running it. NOT_FOUND if there is none, CONFLICT if it
// runs or somebody is at it.
func (s Self) Dismiss(ctx context.Context, id types.UUID, reason string) error {
	return s.k.cfg.Lifecycle.Dismiss(ctx, id, reason)
}

// Stored describes a history that is not running; NOT_FOUND if there is none.
func (s Self) Stored(id types.UUID) (*step.ProcInfo, error) { return s.k.cfg.Lifecycle.Stored(id) }
