package kernel

import (
	"errors"

	"rnix/internal/event"
	"rnix/types"
)

// Pauser is a Body that is told when its process is paused or goes on; PausedSince says which. It must not
// block.
type Pauser interface{ GateMoved() }

// gateMoved tells the body of a process that its gate was shut or opened.
func gateMoved(p *Process) {
	if b, ok := p.opts.Body.(Pauser); ok {
		b.GateMoved()
	}
}

// BodyOf returns what runs a living process in place of the reasoning loop; nil if it is an agent, or is
// not there.
func (k *KernelImpl) BodyOf(pid types.PID) Body {
	if p, ok := k.table.get(pid); ok {
		return p.opts.Body
	}
	return nil
}

// Tell appends an event about a body's process, whose PID and UUID it fills in.
func (k *KernelImpl) Tell(p *Process, e event.Event) {
	e.PID, e.UUID = p.PID, p.UUID
	k.events.Append(e)
}

// Stopping reports whether the kernel stops. What ends then has not ended: it is suspended on disk.
func (k *KernelImpl) Stopping() bool { return k.stopped.Load() }

// IsStop reports whether the cause of the end of a body's context is that its run ends and its process does
// not: the kernel stops, or it was suspended.
func IsStop(cause error) bool { return errors.Is(cause, errStopping) }

// ExitOf is the exit status of a process whose context has ended for a cause that is no stop.
func ExitOf(cause error) types.ExitStatus { return exitFor(&End{Cause: cause}, false) }
