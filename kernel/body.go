package kernel

import (
	"context"

	"rnix/internal/recovery"
	"rnix/internal/step"
	"rnix/kernel/internal/loop"
	"rnix/types"
)

// Body is what runs a process that is no agent, in place of the reasoning loop: a supervisor, a run of a
// workflow. Such a process has no model and no tools, and is the same in all other things: it has a
// history, a parent and children, limits, signals, and can be paused, resumed and killed.
type Body interface {
	// Attach is called once, before the process is visible, with what the body acts through. was is what its
	// history amounts to if it goes on, and nil if it begins. An error refuses the spawn.
	Attach(self Self, was *recovery.State) error
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
func embody(k *KernelImpl, p *Process) error {
	r, err := p.opts.Body.Record()
	if err != nil {
		return types.Errorf(types.ErrInternal, "Spawn", "", "encode: %w", err)
	}
	p.kit, p.kind, p.MaxSteps = &kit{}, r.Kind, 0
	stopBody(p)
	return p.opts.Body.Attach(Self{k, p}, p.opts.From.state())
}

// End is how the run of a body ended. Cause set: its context has ended, and the kernel decides what that
// means. Wait set: it is suspended, and that is what it waits for. Else Exit and Result are what it ends with.
type End = loop.End

// Progress is what others may know of a process while it runs.
type Progress = loop.Progress
