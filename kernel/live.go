package kernel

import (
	"context"
	"runtime/debug"

	"rnix/kernel/internal/loop"
	"rnix/types"
)

// live is the life of a process, in its goroutine. Its frame is on the stack for as long as the process waits
// for its model, and the stacks of many should not grow: so the beginning and the end are elsewhere.
func (k *KernelImpl) live(p *Process, l *loop.Loop) {
	var end loop.End
	defer k.leave(p, &end)
	k.enter(p)
	var runs interface {
		Run(context.Context) loop.End
	} = l
	if p.opts.Body != nil {
		runs = p.opts.Body
	}
	end = runs.Run(p.ctx)
	if p.opts.Body == nil {
		k.endOutput(p, &end)
	}
}

// enter is the first that the goroutine of a process does.
func (k *KernelImpl) enter(p *Process) {
	p.opts.From.hold(p.ctx)
	p.opts.From = nil // it holds the conversation as it was
	k.save(p)
	k.catchUp(p)
}

// leave is the last that the goroutine of a process does, deferred. A panic, of a model's device or of our
// own, ends this process and no other.
func (k *KernelImpl) leave(p *Process, end *loop.End) {
	defer k.reaper.ended(p)
	defer p.wg.Done()
	defer k.closeAll(p)
	defer stopClock(p)
	if r := recover(); r != nil {
		err := types.Errorf(types.ErrInternal, "Step", "", "panic: %v", r)
		k.log.Error("panic", "pid", p.PID, "err", err, "stack", string(debug.Stack()))
		*end = loop.End{Exit: types.ExitStatus{Code: types.ExitError, Reason: err.Err.Error(), Err: err}}
	}
	account{k, p}.Settle(nil) // what a panic has left reserved
	k.finish(p, end)
}

// closeAll closes what an ended process has open. The process cannot be told of failures any more, so
// the log is.
func (k *KernelImpl) closeAll(p *Process) {
	if err := k.vfs.CloseAll(p.PID); err != nil {
		k.log.Warn("close", "pid", p.PID, "uuid", p.UUID, "err", err)
	}
}
