package kernel

import (
	"errors"

	"rnix/types"
)

// Pauser is a Body that is told when its process is paused or goes on; PausedSince says which. It must not
// block.
type Pauser interface{ GateMoved() }

// Stopper is a Body that ends its process itself when SIGTERM or SIGINT asks it to: it is given the signal, and nothing else
// becomes of that. It must not block. BySignal is the Cause of its End.
type Stopper interface{ Stop(sig types.Signal) }

// stopBody has the body of a process given what asks it to end, if it ends by itself.
func stopBody(p *Process) {
	b, ok := p.opts.Body.(Stopper)
	if !ok {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.sigs.SetHandler(types.SIGTERM, b.Stop)
	p.sigs.SetHandler(types.SIGINT, b.Stop)
}

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

// IsStop reports whether the cause of the end of a body's context is that its run ends and its process does
// not: the kernel stops, or it was suspended.
func IsStop(cause error) bool { return errors.Is(cause, errStopping) }

// BySignal is the cause of the end of a body that a signal has asked to end.
func BySignal(sig types.Signal) error { return signalled{sig} }

// IsSignal reports whether a process whose exit status has this error was ended by a signal.
func IsSignal(err error) bool { return errors.As(err, new(signalled)) }

// ExitOf is the exit status of a process whose context has ended for a cause that is no stop.
func ExitOf(cause error) types.ExitStatus { return exitFor(&End{Cause: cause}, false) }
