package kernel

import (
	"runtime/debug"

	"rnix/kernel/internal/loop"
	"rnix/types"
)

// live is the life of a process, in its goroutine. What a process waits in is off the stack when it ends, and what ends
// it when it is reaped: a stack of 2 KiB has room for each of them, and need not grow. Measured by BenchmarkIdleProcess with 10,000
// agents: 14.7 kB for each with what is apart here and in host, finish, reap and process, 18.7 kB without.
func (k *KernelImpl) live(p *Process, l *loop.Loop) {
	end := newEnd()
	defer k.reaper.ended(p)
	defer k.leave(p, end)
	k.run(p, l, end)
}

// newEnd is apart so that the end is not on the stack.
//
//go:noinline
func newEnd() *loop.End { return new(loop.End) }

// run sets how the run of a process has ended. A panic, of a model's device or of our own, ends this process and no
// other.
func (k *KernelImpl) run(p *Process, l *loop.Loop, end *loop.End) {
	defer func() {
		if r := recover(); r != nil {
			k.panicked(p, r, end)
		}
	}()
	k.enter(p)
	if p.opts.Body != nil {
		runBody(p, end)
		return
	}
	*end = *loop.Steps(p.ctx, l)
	k.outputs.endOutput(p, end)
}

// runBody is apart since what Run returns has its place on the stack while it runs, also of an agent that has no body.
//
//go:noinline
func runBody(p *Process, end *loop.End) { *end = p.opts.Body.Run(p.ctx) }

func (k *KernelImpl) panicked(p *Process, r any, end *loop.End) {
	err := types.Errorf(types.ErrInternal, "Step", "", "panic: %v", r)
	k.log.Error("panic", "pid", p.PID, "err", err, "stack", string(debug.Stack()))
	*end = loop.End{Exit: types.ExitStatus{Code: types.ExitError, Reason: err.Err.Error(), Err: err}}
}

// enter is the first that the goroutine of a process does.
func (k *KernelImpl) enter(p *Process) {
	p.opts.From.hold(p.ctx)
	p.opts.From = nil // it holds the conversation as it was
	k.saves.save(p)
	k.children.catchUp(p)
}

// leave ends a process whose run has ended, in its goroutine, but for the reap.
func (k *KernelImpl) leave(p *Process, end *loop.End) {
	defer p.wg.Done()
	defer k.closeAll(p)
	defer stopClock(p)
	account{k.budgets, p}.Settle(nil) // what a panic has left reserved
	k.table.leaves(p)
	k.finish(p, end)
}

// closeAll closes what an ended process has open. The process cannot be told of failures any more, so
// the log is.
func (k *KernelImpl) closeAll(p *Process) {
	if err := k.vfs.CloseAll(p.PID); err != nil {
		k.log.Warn("close", "pid", p.PID, "uuid", p.UUID, "err", err)
	}
}
