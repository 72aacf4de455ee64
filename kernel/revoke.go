package kernel

import (
	"context"
	"time"

	"rnix/types"
)

// revoked is the cause when a process has lost the ownership of what it works on.
type revoked struct{ why string }

func (r revoked) Error() string { return "lost ownership: " + r.why }

// Revoke ends a process, and all that descend from it, because it does not own any more what it works on: somebody else
// does, or may. They end as by SIGKILL, in the middle of what they do, with the exit code for that. NOT_FOUND if it does
// not run.
func (k *KernelImpl) Revoke(pid types.PID, why string) error {
	p, err := k.table.lookup("Revoke", pid)
	if err != nil {
		return err
	}
	procs, _ := k.table.signalled(types.SIGKILL, nil, p) // none of them starts another from now on
	for _, p := range procs {
		p.cancel(revoked{why})
	}
	return nil
}

// Hold makes a process, and all that descend from it, stand still while it has to wait, with its OS children and its clocks, or
// lets them go on unless somebody has paused them. It is a pause that no person has made and that stands in no record;
// what is waited for says Lifecycle.Waits. An answer that a model is giving is still taken. NOT_FOUND if it does not run.
func (k *KernelImpl) Hold(pid types.PID, held bool) error {
	p, err := k.table.lookup("Hold", pid)
	if err != nil {
		return err
	}
	procs := k.table.subtree(p)
	moved := k.signals.bar(held, procs)
	for _, p := range procs {
		k.signals.settleStill(p)
	}
	for _, p := range moved {
		checkClock(p)
		gateMoved(p)
		k.doing.touch(p)
	}
	return nil
}

// bar closes the gates of processes, or opens those that need not wait, and returns those that moved. Whoever asks last decides.
func (s *signaller) bar(held bool, procs []*Process) (moved []*Process) {
	s.holding.Lock()
	defer s.holding.Unlock()
	now := time.Now()
	for _, p := range procs {
		reason, waits := s.lifecycle.Waits(p) // its own session may be another one
		if waits == nil {
			reason = ""
		}
		if held {
			reason = orDefault(reason, "what is above it")
		}
		if changed := p.gate.Bar(now, reason); changed {
			moved = append(moved, p)
		}
	}
	return moved
}

// settleStill freezes or thaws the OS children of a process, as its gate and its ownership stand. What decides may change
// meanwhile, and what came first may act last: so it looks again until what it did is what is wanted.
func (s *signaller) settleStill(p *Process) {
	still := p.gate.Closed
	for {
		want, do := still(), s.lifecycle.Thaw
		if want {
			do = s.lifecycle.Freeze
		}
		do(p.PID)
		if still() == want {
			return
		}
	}
}

// untilFree waits until what a process waits for may have changed. It returns the cause of ctx's end.
func untilFree(ctx context.Context, k *KernelImpl, p *Process, reason string, changed <-chan struct{}) error {
	if changed == nil {
		return context.Cause(ctx)
	}
	k.doing.setWait(p, waiting{reason: reason, since: time.Now()})
	defer waitForNothing(k.doing, p)
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
