package kernel

import (
	"context"
	"sync"
	"time"

	"rnix/internal/event"
	"rnix/types"
)

// reapSteps release what a process had, in the order of 000 §2.5. They run once, by whoever comes
// first: a waiter, the process's own goroutine or the reaper. now is when the last step had ended that waits for others.
var reapSteps = []struct {
	name  string
	waits bool
	do    func(k *KernelImpl, p *Process, now time.Time)
}{
	{"handleOrphanChildren", false, (*KernelImpl).handleOrphanChildren},
	{"cancel", false, func(_ *KernelImpl, p *Process, _ time.Time) { p.cancel(errReaped) }},
	{"wait for the goroutine", true, func(_ *KernelImpl, p *Process, _ time.Time) { p.wg.Wait() }},
	{"close the views on the log", false, func(k *KernelImpl, p *Process, now time.Time) {
		// DebugChan and LogChan are views on the event log; this event is what ends them.
		k.events.Put(&event.Event{Time: now, Kind: event.Reaped, PID: p.PID, UUID: p.UUID})
	}},
	{"close the message queue", false, func(_ *KernelImpl, p *Process, _ time.Time) { p.box.Close() }},
	{"removeFromAllGroups", false, func(k *KernelImpl, p *Process, _ time.Time) {
		if p.grouped { // there are no new ones
			k.table.leaveAll(p)
		}
	}},
	{"ClearSignalState", false, (*KernelImpl).clearSignalState},
	{"ClearThreads", false, func(_ *KernelImpl, p *Process, _ time.Time) { p.ClearThreads() }},
	{"ClearCoroutines", true, func(_ *KernelImpl, p *Process, _ time.Time) { p.ClearCoroutines() }},
	{"CtxFree", false, (*KernelImpl).freeContext},
	{"Reap", false, (*KernelImpl).bury},
	{"RemoveProcess", false, func(k *KernelImpl, p *Process, now time.Time) {
		p.tomb = tombstone(p, now)
		k.table.remove(p, p.tomb)
		k.doing.touch(p) // what is on disk counts from here on
		p.purse.Leave()
		k.store.Ended(p.UUID)
	}},
}

// reapProcess releases everything that an ended process had, or waits for whoever does. A process that has not ended is
// left alone.
func (k *KernelImpl) reapProcess(p *Process) {
	if !closed(p.left) {
		return
	}
	if p.reaped.Swap(true) {
		<-p.gone
		return
	}
	k.reaper.under.Add(1)
	now := time.Now()
	for i := range reapSteps {
		s := &reapSteps[i]
		if s.do(k, p, now); s.waits {
			now = time.Now()
		}
	}
	close(p.gone)
	k.reaper.under.Done()
}

// handleOrphanChildren gives the children to PID 0. Those that have ended already are reaped, since
// nobody is left to wait for them.
func (k *KernelImpl) handleOrphanChildren(p *Process, now time.Time) {
	children, grouped := k.table.orphan(p)
	p.grouped = grouped
	for _, c := range children {
		k.reparented(c, now)
		if c.State() == types.StateZombie {
			k.reaper.add(c)
		}
	}
}

// reparented is apart so that the event is not on the stack while others wait for the table.
//
//go:noinline
func (k *KernelImpl) reparented(c *Process, now time.Time) {
	k.events.Put(&event.Event{Time: now, Kind: event.Reparented, PID: c.PID, UUID: c.UUID})
}

func (k *KernelImpl) clearSignalState(p *Process, _ time.Time) {
	p.mu.Lock()
	p.sigs.Clear()
	p.mu.Unlock()
}

func (k *KernelImpl) freeContext(p *Process, _ time.Time) {
	if err := k.ctxMgr.CtxFree(p.CtxID); err != nil {
		k.unreaped(p, err)
	}
}

func (k *KernelImpl) bury(p *Process, now time.Time) {
	k.saves.saveDead(p) // before the table forgets it: its history may begin its next run then
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.transitionLocked(types.StateDead, k.events, now); err != nil {
		k.unreaped(p, err)
	}
}

// unreaped says that a step of a reap has failed, which does not keep the others from being done.
//
//go:noinline
func (k *KernelImpl) unreaped(p *Process, err error) {
	k.log.Error("reap", "pid", p.PID, "err", err)
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
