package kernel

import (
	"context"
	"sync"
	"time"

	"rnix/internal/event"
	"rnix/types"
)

// reapSteps release what a process had, in the order of 000 §2.5. They run once, by whoever comes
// first: a waiter, the process's own goroutine or the reaper.
var reapSteps = []struct {
	name string
	do   func(*KernelImpl, *Process)
}{
	{"handleOrphanChildren", (*KernelImpl).handleOrphanChildren},
	{"cancel", func(_ *KernelImpl, p *Process) { p.cancel(errReaped) }},
	{"wait for the goroutine", func(_ *KernelImpl, p *Process) { p.wg.Wait() }},
	{"close the views on the log", func(k *KernelImpl, p *Process) {
		// DebugChan and LogChan are views on the event log; this event is what ends them.
		k.events.Put(&event.Event{Kind: event.Reaped, PID: p.PID, UUID: p.UUID})
	}},
	{"close the message queue", func(_ *KernelImpl, p *Process) { p.box.Close() }},
	{"removeFromAllGroups", func(k *KernelImpl, p *Process) {
		if p.grouped { // there are no new ones
			k.table.leaveAll(p)
		}
	}},
	{"ClearSignalState", (*KernelImpl).clearSignalState},
	{"ClearThreads", func(_ *KernelImpl, p *Process) { p.ClearThreads() }},
	{"ClearCoroutines", func(_ *KernelImpl, p *Process) { p.ClearCoroutines() }},
	{"CtxFree", (*KernelImpl).freeContext},
	{"Reap", (*KernelImpl).bury},
	{"RemoveProcess", func(k *KernelImpl, p *Process) {
		p.tomb = p.info(0, nil, time.Now()) // it has no children any more
		k.table.remove(p, p.tomb)
		if k.keeps {
			k.saveInfo(p, p.tomb)
		}
		p.purse.Leave()
		k.store.Ended(p.UUID)
	}},
}

// reapProcess releases everything that an ended process had. A process that has not ended is left
// alone.
func (k *KernelImpl) reapProcess(p *Process) {
	if !closed(p.left) {
		return
	}
	p.reaped.Do(func() {
		k.reaper.under.Add(1)
		defer k.reaper.under.Done()
		for _, s := range reapSteps {
			s.do(k, p)
		}
		close(p.gone)
	})
}

// handleOrphanChildren gives the children to PID 0. Those that have ended already are reaped, since
// nobody is left to wait for them.
func (k *KernelImpl) handleOrphanChildren(p *Process) {
	children, grouped := k.table.orphan(p)
	p.grouped = grouped
	for _, c := range children {
		k.events.Put(&event.Event{Kind: event.Reparented, PID: c.PID, UUID: c.UUID})
		if c.State() == types.StateZombie {
			k.reaper.add(c)
		}
	}
}

func (k *KernelImpl) clearSignalState(p *Process) {
	p.mu.Lock()
	p.sigs.Clear()
	p.mu.Unlock()
}

func (k *KernelImpl) freeContext(p *Process) {
	if err := k.ctxMgr.CtxFree(p.CtxID); err != nil {
		k.log.Error("reap", "pid", p.PID, "err", err)
	}
}

func (k *KernelImpl) bury(p *Process) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.transitionLocked(types.StateDead, k.events, time.Now()); err != nil {
		k.log.Error("reap", "pid", p.PID, "err", err)
	}
}

// reaper reaps the processes that nobody waits for: the children of PID 0. A zombie waits for its parent, or
// for its parent's end, which gives it to PID 0, to be reaped in the reaper's goroutine; when the kernel stops,
// all are reaped.
type reaper struct {
	k    *KernelImpl
	ctx  context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup
	wake chan struct{} // room for one: there is something in queue

	under sync.WaitGroup // of the processes that are being reaped; each is counted before the table forgets it

	mu    sync.Mutex
	queue []*Process // +checklocks:mu
}

func newReaper(k *KernelImpl) *reaper {
	r := &reaper{k: k, wake: make(chan struct{}, 1)}
	r.ctx, r.end = context.WithCancel(context.Background())
	r.wg.Go(r.run) // one per kernel; ends with close
	return r
}

// ended reaps a process that has become a zombie, if it is not its parent's to reap, and tells a parent
// that has a body. A parent that is reaped at the same time either is seen here or sees the zombie. It is
// the last that the process's own goroutine does, so that nobody has to be woken for it, and a thread
// that does not end keeps no other process from being reaped.
func (r *reaper) ended(p *Process) {
	ppid := r.k.table.ppid(p)
	if ppid == 0 || p.told || r.k.stopped.Load() {
		r.k.reapProcess(p)
	} else if parent, ok := r.k.table.get(ppid); ok && parent.opts.Body != nil {
		parent.opts.Body.Ended(p)
	}
}

// add has a zombie reaped. It never blocks.
func (r *reaper) add(p *Process) {
	r.mu.Lock()
	r.queue = append(r.queue, p)
	r.mu.Unlock()
	select {
	case r.wake <- struct{}{}:
	default:
	}
}

func (r *reaper) run() {
	for {
		r.drain()
		select {
		case <-r.wake:
		case <-r.ctx.Done():
			r.drain()
			return
		}
	}
}

func (r *reaper) drain() {
	for {
		r.mu.Lock()
		q := r.queue
		r.queue = nil
		r.mu.Unlock()
		if len(q) == 0 {
			return
		}
		for _, p := range q {
			r.k.reapProcess(p)
		}
	}
}

// close reaps what is left and ends the reaper and the callbacks.
func (r *reaper) close() {
	r.end()
	r.wg.Wait()
}
