package kernel

import (
	"slices"
	"strings"

	"rnix/types"
	"rnix/vfs"
)

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

// mayLend refuses a child a model that its parent may not use. The parent's own model was given to it by whoever started it, and
// so it may hand that on; a list of what it may open says something of others only if it names some.
func mayLend(t *table, parent *Process, o *SpawnOpts) error {
	own := t.modelsOf(parent)
	for _, provider := range []string{o.Provider, o.FallbackProvider} {
		path := modelRoot + "/" + provider
		if provider == "" || slices.Contains(own, provider) || parent.Rights.lends(path) {
			continue
		}
		e := types.Errorf(types.ErrPermission, "Spawn", path, "cannot start an agent with this model: its parent, process %d, may not use it; that may use: %s",
			parent.PID, strings.Join(parent.Rights.list(), " "))
		e.PID = parent.PID
		return e
	}
	return nil
}

// lends reports whether who has these rights may start others with the model at path.
func (r Rights) lends(path string) bool {
	model := func(dir string) bool { return vfs.Below(dir, modelRoot) }
	return r.Permits(path) || !slices.ContainsFunc(r.Allowed, model) && Rights{Denied: r.Denied}.Permits(path)
}

// modelsOf returns the providers of the models that a process was given, or, if it has a body, who started it.
func (t *table) modelsOf(p *Process) []string {
	t.mu.Lock()
	defer t.mu.Unlock()
	for p.opts.Body != nil && p.rel.parent != nil {
		p = p.rel.parent
	}
	return []string{p.opts.Provider, p.opts.FallbackProvider}
}
