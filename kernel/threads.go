package kernel

import (
	"cmp"
	"context"
	"slices"
	"strconv"

	"rnix/types"
	"rnix/vfs"
)

// threadsOf starts threads of a process for its loop: calls of one answer that run side by side are
// threads, so that they are seen while they run, end with the process, and are waited for when it is
// reaped.
func threadsOf(k *KernelImpl, p *Process) func(context.Context, string, func(context.Context)) (func(), error) {
	return func(ctx context.Context, intent string, f func(context.Context)) (join func(), err error) {
		c := k.tracer.call(p, "ThreadCreate", "")
		id, err := p.SpawnThread(intent, func(t *Thread) {
			ctx, cancel := context.WithCancelCause(ctx)
			defer cancel(nil)
			defer context.AfterFunc(t.Context(), func() { cancel(context.Cause(t.Context())) })()
			f(ctx)
		})
		c.ends(intent, "thread "+strconv.FormatUint(uint64(id), 10), err)
		if err != nil {
			return nil, err
		}
		t, err := p.Thread(id)
		if err != nil {
			return nil, err
		}
		return func() {
			c := k.tracer.call(p, "ThreadJoin", "")
			defer func() { c.ends("thread "+strconv.FormatUint(uint64(id), 10), "", nil) }()
			<-t.Done // also after the process was cancelled: what the calls brought is recorded
			t.forget()
		}, nil
	}
}

// Threads returns the threads and coroutines of a process that have not been joined, in order.
func (v Proc) Threads(pid types.PID) ([]vfs.ProcThread, error) {
	p, err := v.k.table.lookup("Read", pid)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	threads := make([]*Thread, 0, len(p.threads))
	for _, t := range p.threads {
		threads = append(threads, t)
	}
	var cos []vfs.ProcThread
	for _, c := range p.coroutines {
		s := "suspended"
		if len(c.turn) > 0 {
			s = types.StateRunning.String()
		}
		cos = append(cos, vfs.ProcThread{Kind: "coroutine", ID: uint64(c.CoID), State: s, Intent: c.Intent})
	}
	p.mu.Unlock()
	var out []vfs.ProcThread
	for _, t := range threads {
		state, _, _ := t.Outcome()
		out = append(out, vfs.ProcThread{Kind: "thread", ID: uint64(t.TID), State: state.String(), Intent: t.Intent})
	}
	byID := func(a, b vfs.ProcThread) int { return cmp.Compare(a.ID, b.ID) }
	slices.SortFunc(out, byID)
	slices.SortFunc(cos, byID)
	return append(out, cos...), nil
}
