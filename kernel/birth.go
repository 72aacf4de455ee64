package kernel

import (
	"context"
	"time"

	"rnix/agent"
	"rnix/vfs"
)

// spawnBy is spawn, traced as a call of the process that starts another; nil = of a person. What goes on is not spawned
// but resumed, or forked.
func spawnBy(ctx context.Context, k *KernelImpl, p *Process, intent string, ag *agent.Agent, opts SpawnOpts) (*Process, error) {
	c := k.tracer.call(p, birth(opts.From), "")
	child, err := k.spawn(ctx, intent, ag, opts)
	c.ends(k.tracer.brief(intent), born(child), err)
	return child, err
}

// birth is the syscall by which a process comes to be.
func birth(f *From) string {
	switch {
	case f == nil:
		return "Spawn"
	case f.State.Origin != nil && f.State.Runs == 0:
		return "Fork"
	}
	return "Resume"
}

// born is the result of a syscall that has started a process.
func born(p *Process) string {
	if p == nil {
		return ""
	}
	return "PID " + p.PID.String()
}

// openModel opens the model of an agent, and returns how long that took. The trace tells of it when the process is there,
// see opened.
func openModel(k *KernelImpl, p *Process) (took time.Duration, err error) {
	if p.opts.Body != nil {
		return 0, nil
	}
	start := time.Now()
	if p.modelFD, err = k.vfs.Open(p.PID, p.modelPath, vfs.OpenReadWrite); err != nil {
		return 0, err
	}
	if f, ferr := k.vfs.File(p.PID, p.modelFD); ferr == nil {
		if m, ok := f.(vfs.Modeler); ok {
			p.model = m.ModelCard()
		}
	}
	return time.Since(start), nil
}

// opened says in the trace that the model was opened, and how long that took.
func opened(k *KernelImpl, p *Process, took time.Duration) {
	if p.opts.Body == nil {
		c := k.tracer.call(p, "Open", p.modelPath)
		c.start = c.start.Add(-took)
		c.ends("", fdName(p.modelFD), nil)
	}
}
