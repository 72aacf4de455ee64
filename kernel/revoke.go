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
	procs, _ := k.table.signalled(p, types.SIGKILL) // none of them starts another from now on
	for _, p := range procs {
		p.cancel(revoked{why})
	}
	return nil
}

// Hold makes the OS children of a process, and of all that descend from it, stand still while it does not own what it works
// on, or lets them go on unless the process is paused. The processes themselves are held by Config.Owns. NOT_FOUND if it
// does not run.
func (k *KernelImpl) Hold(pid types.PID, held bool) error {
	p, err := k.table.lookup("Hold", pid)
	if err != nil {
		return err
	}
	procs := k.table.subtree(p)
	k.holding.Lock() // whoever asks last decides
	for _, p := range procs {
		p.alien.Store(held || k.unowned(p) != nil) // its own session may be another one
	}
	k.holding.Unlock()
	for _, p := range procs {
		k.settleStill(p)
	}
	return nil
}

// settleStill freezes or thaws the OS children of a process, as its gate and its ownership stand. What decides may change
// meanwhile, and what came first may act last: so it looks again until what it did is what is wanted.
func (k *KernelImpl) settleStill(p *Process) {
	if k.cfg.Freeze == nil && k.cfg.Thaw == nil {
		return
	}
	still := func() bool {
		_, shut := p.gate.Since()
		return shut || p.alien.Load()
	}
	for {
		want, do := still(), k.cfg.Thaw
		if want {
			do = k.cfg.Freeze
		}
		if do != nil {
			do(p.PID)
		}
		if still() == want {
			return
		}
	}
}

// unowned returns nil if a process owns what it works on, or what is closed when that may have changed.
func (k *KernelImpl) unowned(p *Process) <-chan struct{} {
	if k.cfg.Owns == nil {
		return nil
	}
	ours, changed := k.cfg.Owns(p)
	if ours {
		return nil
	}
	return changed
}

// untilOwned waits until a process may own again what it works on; nil = it does. It returns the cause of ctx's end.
func (k *KernelImpl) untilOwned(ctx context.Context, p *Process, changed <-chan struct{}) error {
	if changed == nil {
		return context.Cause(ctx)
	}
	k.setWait(p, waiting{reason: "the lease of its session", since: time.Now()})
	defer waitForNothing(k, p)
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
