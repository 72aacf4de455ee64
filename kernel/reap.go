package kernel

import (
	"context"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/types"
)

// reapSteps release what a process had, in the order of 000 §2.5. They run once, by whoever comes
// first: a waiter, the process's own goroutine or the reaper. now is when the last step had ended that waits for others.
var reapSteps = []struct {
	name  string
	waits bool
	do    func(r *reaper, p *Process, now time.Time)
}{
	{"handleOrphanChildren", false, (*reaper).handleOrphanChildren},
	{"cancel", false, func(_ *reaper, p *Process, _ time.Time) { p.cancel(errReaped) }},
	{"wait for the goroutine", true, func(_ *reaper, p *Process, _ time.Time) { p.wg.Wait() }},
	{"close the views on the log", false, func(r *reaper, p *Process, now time.Time) {
		// DebugChan and LogChan are views on the event log; this event is what ends them.
		r.events.Put(&event.Event{Time: now, Kind: event.Reaped, PID: p.PID, UUID: p.UUID})
	}},
	{"close the message queue", false, func(_ *reaper, p *Process, _ time.Time) { p.box.Close() }},
	{"removeFromAllGroups", false, func(r *reaper, p *Process, _ time.Time) {
		if p.grouped { // there are no new ones
			r.table.leaveAll(p)
		}
	}},
	{"ClearSignalState", false, (*reaper).clearSignalState},
	{"ClearThreads", false, func(_ *reaper, p *Process, _ time.Time) { p.ClearThreads() }},
	{"ClearCoroutines", true, func(_ *reaper, p *Process, _ time.Time) { p.ClearCoroutines() }},
	{"CtxFree", false, (*reaper).freeContext},
	{"Reap", false, (*reaper).bury},
	{"RemoveProcess", false, func(r *reaper, p *Process, now time.Time) {
		p.tomb = tombstone(p, now)
		r.table.remove(p, p.tomb)
		r.doing.touch(p) // what is on disk counts from here on
		p.purse.Leave()
		r.store.Ended(p.UUID)
	}},
}

// reap releases everything that an ended process had, or waits for whoever does. A process that has not ended is
// left alone.
func (r *reaper) reap(p *Process) {
	if !closed(p.left) {
		return
	}
	if p.reaped.Swap(true) {
		<-p.gone
		return
	}
	r.under.Add(1)
	now := time.Now()
	for i := range reapSteps {
		s := &reapSteps[i]
		if s.do(r, p, now); s.waits {
			now = time.Now()
		}
	}
	close(p.gone)
	r.under.Done()
}

// handleOrphanChildren gives the children to PID 0. Those that have ended already are reaped, since
// nobody is left to wait for them.
func (r *reaper) handleOrphanChildren(p *Process, now time.Time) {
	children, grouped := r.table.orphan(p)
	p.grouped = grouped
	for _, c := range children {
		r.reparented(c, now)
		if c.State() == types.StateZombie {
			r.add(c)
		}
	}
}

// reparented is apart so that the event is not on the stack while others wait for the table.
//
//go:noinline
func (r *reaper) reparented(c *Process, now time.Time) {
	r.events.Put(&event.Event{Time: now, Kind: event.Reparented, PID: c.PID, UUID: c.UUID})
}

func (r *reaper) clearSignalState(p *Process, _ time.Time) {
	p.mu.Lock()
	p.sigs.Clear()
	p.mu.Unlock()
}

func (r *reaper) freeContext(p *Process, _ time.Time) {
	if err := r.contexts.CtxFree(p.CtxID); err != nil {
		r.unreaped(p, err)
	}
}

func (r *reaper) bury(p *Process, now time.Time) {
	r.saves.saveDead(p) // before the table forgets it: its history may begin its next run then
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.transitionLocked(types.StateDead, r.events, now); err != nil {
		r.unreaped(p, err)
	}
}

// unreaped says that a step of a reap has failed, which does not keep the others from being done.
//
//go:noinline
func (r *reaper) unreaped(p *Process, err error) {
	r.log.Error("reap", "pid", p.PID, "err", err)
}

// reaper reaps the processes that nobody waits for: the children of PID 0. A zombie waits for its parent, or
// for its parent's end, which gives it to PID 0, to be reaped in the reaper's goroutine; when the kernel stops,
// all are reaped.
type reaper struct {
	table    *table
	contexts *rnixctx.Manager
	saves    *saver
	doing    *activity
	store    Store
	events   *event.Log
	log      *slog.Logger
	stopped  *atomic.Bool // the kernel stops

	ctx  context.Context
	end  context.CancelFunc
	wg   sync.WaitGroup
	wake chan struct{} // room for one: there is something in queue

	under sync.WaitGroup // of the processes that are being reaped; each is counted before the table forgets it

	mu    sync.Mutex
	queue []*Process // +checklocks:mu
}

// start begins to reap.
func (r *reaper) start() {
	r.ctx, r.end = context.WithCancel(context.Background())
	r.wg.Go(r.run) // one per kernel; ends with close
}

// ended reaps a process that has become a zombie, if it is not its parent's to reap, and tells a parent
// that has a body. A parent that is reaped at the same time either is seen here or sees the zombie. It is
// the last that the process's own goroutine does, so that nobody has to be woken for it, and a thread
// that does not end keeps no other process from being reaped.
func (r *reaper) ended(p *Process) {
	ppid := r.table.ppid(p)
	if ppid == 0 || p.told || r.stopped.Load() {
		r.reap(p)
	} else if parent, ok := r.table.get(ppid); ok && parent.opts.Body != nil {
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
			r.reap(p)
		}
	}
}

// close reaps what is left and ends the reaper and the callbacks.
func (r *reaper) close() {
	r.end()
	r.wg.Wait()
}
