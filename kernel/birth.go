package kernel

import (
	"context"
	"time"

	"rnix/agent"
	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/kernel/internal/loop"
	"rnix/vfs"
)

// birth is a spawn under way: what it makes, step by step.
type birth struct {
	k      *KernelImpl
	ag     *agent.Agent
	parent *Process // nil = a person's
	p      *Process
	start  time.Time

	took   time.Duration // to open the model
	loop   *loop.Loop    // nil = it has a body
	system string        // its system prompt
}

// spawnBy is spawn, traced as a call of the process that starts another; nil = of a person. What goes on is not spawned
// but resumed, or forked.
func spawnBy(ctx context.Context, k *KernelImpl, p *Process, intent string, ag *agent.Agent, opts SpawnOpts) (*Process, error) {
	c := k.tracer.call(p, birthCall(opts.From), "")
	child, err := k.spawn(ctx, intent, ag, opts)
	c.ends(k.tracer.brief(intent), born(child), err)
	return child, err
}

// birthCall is the syscall by which a process comes to be.
func birthCall(f *From) string {
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

// carry gives a settled process its place, what it works with, and a record that says that it has begun. What was taken is given back if
// something fails.
func (b *birth) carry(ctx context.Context) (err error) {
	k, p := b.k, b.p
	if p.PID, p.depth, err = k.table.admit(b.parent, p.opts.From != nil); err != nil {
		return err
	}
	descend(p, b.parent)
	k.signals.armSignals(p)
	k.budgets.open(p, limitOf(b.ag, &p.opts))
	defer func() {
		if err != nil {
			b.abandon()
		}
	}()
	if err = b.equip(ctx); err != nil {
		return err
	}
	if err = b.record(); err != nil {
		return err
	}
	return b.enter()
}

// equip gives a process what it reasons with: a context, its model, its servers, its tools and its system prompt. One that
// has a body needs just the first of them, and has no loop.
func (b *birth) equip(ctx context.Context) (err error) {
	k, p := b.k, b.p
	if p.CtxID, err = k.ctxMgr.CtxAlloc(p.opts.CtxSize); err != nil {
		return err
	}
	k.vfs.AdmitAs(p.PID, func() vfs.Caller { return p.caller(k) })
	if p.opts.Body != nil {
		return embody(k, p)
	}
	if err = b.openModel(); err != nil {
		return err
	}
	if err = k.budgets.priced(p); err != nil {
		return err
	}
	if err = k.servers.mountFor(ctx, p, b.parent, serversOf(b.ag, p.opts)); err != nil {
		return err
	}
	if b.loop, b.system, err = equip(ctx, k, p, b.ag); err != nil {
		return err
	}
	return k.ctxMgr.SetSystemPrompt(p.CtxID, b.system)
}

// record opens the history of a process and writes what it, or a new run of it, begins with.
func (b *birth) record() (err error) {
	k, p := b.k, b.p
	if f := p.opts.From; f != nil {
		p.rec = f.Rec
	} else if p.rec, err = k.store.Create(p.UUID); err != nil {
		return err
	}
	if merr := k.store.SaveMeta(p.UUID, b.system, p.kit.list, p.model); merr != nil {
		k.log.Warn("process-meta.json", "err", merr) // nothing depends on it
	}
	if f := p.opts.From; f != nil {
		return goOn(k, p, f)
	}
	return begin(k, p)
}

// enter puts a process into the table, its groups and its family.
func (b *birth) enter() error {
	k, p := b.k, b.p
	p.began = time.Now() // not before its record says so: what it has lived must not be less after a resume
	if err := k.table.insert(p); err != nil {
		k.saves.refusedAgain(p, err)
		return err
	}
	for _, id := range p.opts.Groups {
		_ = k.table.join(p, id) // nobody can have reaped it yet
	}
	if b.parent != nil && b.parent.opts.Body != nil {
		b.parent.opts.Body.Joined(p)
	}
	return nil
}

// launch starts the reasoning goroutine of a process that is in the table.
func (b *birth) launch() {
	k, p := b.k, b.p
	k.events.Append(event.Event{Kind: event.Spawned, PID: p.PID, UUID: p.UUID, PPID: k.table.ppid(p), Intent: rnixctx.Elide(p.Intent, 4<<10), Agent: p.Agent,
		Provider: p.progress.Provider, Model: p.progress.Model, // +checklocksignore: it changes only in the goroutine that starts below
		Total: p.MaxSteps, Name: p.Name(), Dur: time.Since(b.start)})
	p.servers.begins(k.events)
	b.opened()
	if err := p.start(k.events); err != nil {
		k.log.Error("start", "err", err) // cannot happen: the process is new
	}
	startClock(p, k)
	if k.table.held(p) { // born into a tree that is paused
		if _ = k.signals.pause(p, time.Now()); !k.table.held(p) { // and resumed meanwhile
			_ = k.signals.resume(p, time.Now()) // nobody waits for it; what could not be written stands in the log
		}
	}
	p.wg.Add(1)
	go k.engine.live(p, b.loop) // one per process; ends with the loop; reap waits for it
}

// abandon takes back what a failed spawn has, last first. Errors are left alone: the caller has one.
func (b *birth) abandon() {
	k, p := b.k, b.p
	if p.rec != nil && p.opts.From == nil {
		_ = p.rec.Close()
		_ = k.store.Discard(p.UUID)
	}
	k.servers.unmountFor(nil, p)
	_ = k.vfs.CloseAll(p.PID)
	if p.CtxID != 0 {
		_ = k.ctxMgr.CtxFree(p.CtxID)
	}
	p.purse.Leave()
}

// openModel opens the model of an agent. The trace tells of it when the process is there, see opened.
func (b *birth) openModel() (err error) {
	p, start := b.p, time.Now()
	if p.modelFD, err = b.k.vfs.Open(p.PID, p.modelPath, vfs.OpenReadWrite); err != nil {
		return err
	}
	if f, ferr := b.k.vfs.File(p.PID, p.modelFD); ferr == nil {
		if m, ok := f.(vfs.Modeler); ok {
			if p.model = m.ModelCard(); p.model.Metered {
				p.meter = newMeter()
			}
		}
	}
	b.took = time.Since(start)
	return nil
}

// opened says in the trace that the model was opened, and how long that took.
func (b *birth) opened() {
	if b.p.opts.Body == nil {
		c := b.k.tracer.call(b.p, "Open", b.p.modelPath)
		c.start = c.start.Add(-b.took)
		c.ends("", fdName(b.p.modelFD), nil)
	}
}
