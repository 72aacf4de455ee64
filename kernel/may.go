package kernel

import "rnix/types"

// MaySpawn refuses an agent that wants to start others, on whatever way, without the right.
func (k *KernelImpl) MaySpawn(pid types.PID) error {
	return k.may(pid, "Spawn", spawnRight, "start agents")
}

// MaySignal refuses an agent that wants to send signals, on whatever way, without the right.
func (k *KernelImpl) MaySignal(pid types.PID) error {
	return k.may(pid, "Signal", signalRight, "send signals")
}

// may refuses a living process without a right to what.
func (k *KernelImpl) may(pid types.PID, op, right, what string) error {
	p, err := k.table.lookup(op, pid)
	if err != nil {
		return err
	}
	return permitted(p, op, right, what)
}

// permitted refuses a process without a right to what.
func permitted(p *Process, op, right, what string) error {
	if p.Rights.Permits(right) {
		return nil
	}
	return types.Errorf(types.ErrPermission, op, right, "this process may not %s", what)
}
