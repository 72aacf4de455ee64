package kernel

import (
	"slices"
	"strings"

	"rnix/types"
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

// mayHave refuses a process a model that those above it may not use: a child its parent's, on whatever way it is started, and
// one that is resumed another model than it had. The parent's own model was given to it by whoever started it, and so it may hand that on;
// a list of what it may open says something of others only if it names some. Where the parent is gone, what the process has of its rights counts.
func mayHave(t *table, p, parent *Process) error {
	o, rights, who := &p.opts, Rights{}, "which is gone,"
	var own []string
	op, what := "Spawn", "start an agent with this model"
	if f := o.From; f != nil {
		if parent == nil && f.Was.ParentUUID == (types.UUID{}) {
			return nil
		}
		rights, own = Rights{Allowed: f.Was.AllowedDevices, Denied: f.Was.DeniedDevices}, []string{f.Was.Provider, f.Was.FallbackProvider}
		op, what = "Resume", "resume it with this model; a copy of it that has no parent can have it (--fork)"
	} else if parent == nil {
		return nil
	}
	if parent != nil {
		rights, own, who = parent.Rights, append(own, t.modelsOf(parent)...), "process "+parent.PID.String()+","
	}
	for _, provider := range []string{o.Provider, o.FallbackProvider} {
		path := modelRoot + "/" + provider
		if provider == "" || slices.Contains(own, provider) || rights.lends(path) {
			continue
		}
		return types.Errorf(types.ErrPermission, op, path, "cannot %s: its parent, %s may not use it; that may use: %s", what, who, strings.Join(rights.list(), " "))
	}
	return nil
}

// lends reports whether who has these rights may start others with the model at path.
func (r Rights) lends(path string) bool {
	return r.Permits(path) || len(modelsIn(r.Allowed)) == 0 && Rights{Denied: r.Denied}.Permits(path)
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

// VariablesOf returns the names of the variables that the OS children of a process see.
func VariablesOf(p *Process) []string {
	names := make([]string, 0, len(p.opts.Env))
	for _, kv := range p.opts.Env {
		name, _, _ := strings.Cut(kv, "=")
		names = append(names, name)
	}
	return names
}
