package kernel

import (
	"log/slog"
	"runtime/debug"

	"rnix/internal/event"
	"rnix/internal/redact"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// engine runs processes, each in a goroutine of its own, and ends them.
type engine struct {
	table     *table
	reaper    *reaper
	outputs   *outputs
	saves     *saver
	children  *offspring
	mail      *mailer
	servers   *servers
	budgets   *budgets
	vfs       *vfs.VFS
	lifecycle Lifecycle
	events    *event.Log
	secrets   *redact.Set
	log       *slog.Logger
}

// live is the life of a process, in its goroutine. What a process waits in is off the stack when it ends, and what ends
// it when it is reaped: a stack of 2 KiB has room for each of them, and need not grow. Measured by BenchmarkIdleProcess with 10,000
// agents: 14.7 kB for each with what is apart here and in host, finish, reap and process, 18.7 kB without.
func (v *engine) live(p *Process, l *loop.Loop) {
	end := newEnd()
	defer v.reaper.ended(p)
	defer v.leave(p, end)
	v.run(p, l, end)
}

// newEnd is apart so that the end is not on the stack.
//
//go:noinline
func newEnd() *loop.End { return new(loop.End) }

// run sets how the run of a process has ended. A panic, of a model's device or of our own, ends this process and no
// other.
func (v *engine) run(p *Process, l *loop.Loop, end *loop.End) {
	defer func() {
		if r := recover(); r != nil {
			v.panicked(p, r, end)
		}
	}()
	v.enter(p)
	if p.opts.Body != nil {
		runBody(p, end)
		return
	}
	*end = *loop.Steps(p.ctx, l)
	v.outputs.endOutput(p, end)
}

// runBody is apart since what Run returns has its place on the stack while it runs, also of an agent that has no body.
//
//go:noinline
func runBody(p *Process, end *loop.End) { *end = p.opts.Body.Run(p.ctx) }

func (v *engine) panicked(p *Process, r any, end *loop.End) {
	err := types.Errorf(types.ErrInternal, "Step", "", "panic: %v", r)
	v.log.Error("panic", "pid", p.PID, "err", err, "stack", string(debug.Stack()))
	*end = loop.End{Exit: types.ExitStatus{Code: types.ExitError, Reason: err.Err.Error(), Err: err}}
}

// enter is the first that the goroutine of a process does.
func (v *engine) enter(p *Process) {
	p.opts.From.hold(p.ctx)
	p.opts.From = nil // it holds the conversation as it was
	v.saves.save(p)
	v.children.catchUp(p)
}

// leave ends a process whose run has ended, in its goroutine, but for the reap.
func (v *engine) leave(p *Process, end *loop.End) {
	defer p.wg.Done()
	defer v.closeAll(p)
	defer stopClock(p)
	account{v.budgets, p}.Settle(nil) // what a panic has left reserved
	closeMeter(p)
	p.asks.shown()
	v.table.leaves(p)
	v.finish(p, end)
}

// closeAll closes what an ended process has open. The process cannot be told of failures any more, so
// the log is.
func (v *engine) closeAll(p *Process) {
	if err := v.vfs.CloseAll(p.PID); err != nil {
		v.log.Warn("close", "pid", p.PID, "uuid", p.UUID, "err", err)
	}
}
