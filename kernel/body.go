package kernel

import (
	"context"
	"encoding/json"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// Body is what runs a process that is no agent, in place of the reasoning loop: a supervisor, a run of a
// workflow. Such a process has no model and no tools, and is the same in all other things: it has a
// history, a parent and children, limits, signals, and can be paused, resumed and killed.
type Body interface {
	// Attach is called once, before the process is visible. was is what its history amounts to if it goes
	// on, and nil if it begins. An error refuses the spawn.
	Attach(k *KernelImpl, p *Process, was *recovery.State) error
	// Record returns what the history keeps of the body, so that a later run can make it again. It must
	// hold no secrets.
	Record() (step.BodyRecord, error)
	// Run is called in the process's goroutine. It returns soon after ctx has ended, with the cause of that
	// in End.Cause.
	Run(ctx context.Context) End
	// Joined is told of a child that has become visible, whoever has started or resumed it. It must not
	// block or spawn: the child has not begun to run.
	Joined(child *Process)
	// Ended is told of a child that has become a zombie, which is then the body's to reap (WaitInfo). It
	// must not block.
	Ended(child *Process)
}

// embody gives a process its body in place of what an agent has.
func (k *KernelImpl) embody(p *Process) error {
	r, err := p.opts.Body.Record()
	if err != nil {
		return types.Errorf(types.ErrInternal, "Spawn", "", "encode: %w", err)
	}
	p.kit, p.kind, p.MaxSteps = &kit{}, r.Kind, 0
	stopBody(p)
	return p.opts.Body.Attach(k, p, p.opts.From.state())
}

// End is how the run of a body ended. Cause set: its context has ended, and the kernel decides what that
// means. Wait set: it is suspended, and that is what it waits for. Else Exit and Result are what it ends with.
type End = loop.End

// Progress is what others may know of a process while it runs.
type Progress = loop.Progress

// Note keeps something of a body in the history of its process, durably, under a key: State.Notes has the
// latest of each key when the process goes on. A detail of nil takes it back. An error means that the
// record cannot be written any more: the body must end with it.
func (k *KernelImpl) Note(p *Process, key string, detail any) error {
	b, err := json.Marshal(detail)
	if err != nil {
		return types.Errorf(types.ErrInternal, "Note", key, "encode: %w", err)
	}
	return k.Mark(p, step.Marker{Name: step.MarkerNote, PID: p.PID, Text: key, Detail: b})
}

// Mark writes markers into the history of a process, durably and at once. As with Note, an error ends a body.
func (k *KernelImpl) Mark(p *Process, ms ...step.Marker) error {
	recs := make([]step.Record, len(ms))
	for i := range ms {
		recs[i] = step.Record{Kind: step.KindMarker, Marker: &ms[i]}
	}
	if err := p.rec.Add(recs...); err != nil {
		return err
	}
	return p.rec.Commit()
}

// Say writes a line into the log of a process; category is output, warning or the like.
func (k *KernelImpl) Say(p *Process, category, text string) {
	k.events.Append(event.Event{Kind: event.LogLine, PID: p.PID, UUID: p.UUID, Name: orDefault(category, "output"), Text: rnixctx.Elide(text, maxLine)})
}

// SetWait publishes what a body waits for, for people: empty = nothing. until may be zero.
func (k *KernelImpl) SetWait(p *Process, reason string, until time.Time) {
	k.setWait(p, waiting{reason: reason, until: until})
}

// SetBusy publishes what a body does at the moment, as SetWait what it waits for.
func (k *KernelImpl) SetBusy(p *Process, what string) {
	k.setWait(p, waiting{tool: what, since: time.Now()})
}

// SetProgress publishes the counters of a body.
func (k *KernelImpl) SetProgress(p *Process, pr Progress) {
	p.mu.Lock()
	p.progress = pr
	p.mu.Unlock()
	k.touch(p)
}

// WaitIfPaused holds the caller while a process is paused. It returns the cause of ctx's end.
func (k *KernelImpl) WaitIfPaused(ctx context.Context, p *Process) error { return p.gate.Wait(ctx) }

// PausedSince returns since when a person has paused a process; false if nobody has.
func (k *KernelImpl) PausedSince(p *Process) (time.Time, bool) { return p.gate.Since() }

// Held reports whether a process is paused, or has to wait for something; see Hold.
func (k *KernelImpl) Held(p *Process) bool { return p.gate.Closed() }

// Revive lets a suspended history go on as a child of p, whose body needs it. NOT_FOUND if there is none,
// CONFLICT if it runs already or has ended, unless a signal ended it: then it goes on where it was.
func (k *KernelImpl) Revive(ctx context.Context, p *Process, id types.UUID) (types.PID, error) {
	return k.cfg.Lifecycle.Revive(ctx, p, id)
}

// Dismiss ends a suspended history, and those below it, without running it. NOT_FOUND if there is none, CONFLICT if it
// runs or somebody is at it.
func (k *KernelImpl) Dismiss(ctx context.Context, id types.UUID, reason string) error {
	return k.cfg.Lifecycle.Dismiss(ctx, id, reason)
}

// StoredInfo describes a history that is not running; NOT_FOUND if there is none.
func (k *KernelImpl) StoredInfo(id types.UUID) (*step.ProcInfo, error) {
	return k.cfg.Lifecycle.Stored(id)
}
