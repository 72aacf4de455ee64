package kernel

import (
	"context"
	"slices"
	"strings"
	"time"

	"rnix/internal/step"
	"rnix/types"
)

// interruptKey begins the key of the message that holds the on_interrupt of an agent, so that the next run knows it too.
const interruptKey = "SIGINT "

// armSignals makes hold what an agent says of signals, or what it had in its last run, whatever its file says by now. Below an agent
// nothing is blocked: what an agent has started can be ended. The process is not visible yet.
func (s *signaller) armSignals(p *Process) {
	if p.opts.Body != nil {
		p.BlockedSignals, p.OnInterrupt = nil, ""
	}
	if p.byAgent {
		p.BlockedSignals = nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, sig := range p.BlockedSignals {
		p.sigs.Block(sig)
	}
	if p.OnInterrupt != "" {
		p.sigs.SetHandler(types.SIGINT, func(sig types.Signal) { s.interrupt(p, sig) })
	}
}

// interrupt tells an agent that it was interrupted. One that has not taken up the last interrupt, or cannot be told, ends.
func (s *signaller) interrupt(p *Process, sig types.Signal) {
	if p.post.interrupts() {
		m := step.Mail{Kind: step.MailSteer, Key: interruptKey + types.NewUUID().String(), Time: time.Now(), Text: p.OnInterrupt}
		_, err := s.mail.post(context.Background(), p, m, false)
		if err == nil {
			return
		}
		s.log.Warn("on_interrupt", "pid", p.PID, "err", err)
	}
	p.mu.Lock()
	if p.fatal == 0 {
		p.fatal = sig
	}
	p.mu.Unlock()
	p.cancel(signalled{sig})
}

// interrupts notes that the agent is interrupted, and reports whether it has taken up the last time.
func (o *post) interrupts() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	again := o.interrupted
	o.interrupted = true
	return !again
}

func isInterrupt(m *step.Mail) bool { return strings.HasPrefix(m.Key, interruptKey) }

// authority is on whose behalf a signal is sent.
type authority struct {
	p       *Process // nil = a person
	enforce bool     // the kernel itself, which nothing holds up
}

// enforces reports of a process whether a signal ends it whatever its agent says: one that the kernel sends, or who is above it.
func (s *signaller) enforces(from authority, sig types.Signal) func(*Process) bool {
	return func(p *Process) bool { return ends(sig) && (from.enforce || from.p != nil && s.table.above(from.p, p)) }
}

// agentHolds reports whether the agent of a process has it block or handle a signal. What SigBlock and SetHandler say is not its agent's.
func agentHolds(p *Process, sig types.Signal) bool {
	return slices.Contains(p.BlockedSignals, sig) || sig == types.SIGINT && p.OnInterrupt != ""
}

// ends reports whether a signal ends what does not block or handle it.
func ends(sig types.Signal) bool { return sig != types.SIGPAUSE && sig != types.SIGRESUME }

// Terminate ends a process as SIGTERM does, whatever its agent blocks; a body that ends its process itself still does. It is
// how anything but a person ends a process in order. One that has ended is left alone; NOT_FOUND if there is none.
func (k *KernelImpl) Terminate(pid types.PID) error {
	c := k.tracer.call(nil, "Signal", "")
	err := k.signals.send(authority{enforce: true}, pid, types.SIGTERM)
	c.ends(pid.String()+", "+types.SIGTERM.String(), "", err)
	return err
}
