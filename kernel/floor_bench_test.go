package kernel

import (
	"bytes"
	"context"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/kernel/internal/loop"
	"rnix/types"
	"rnix/vfs"
)

// part is what a killed process does. Each has those before it too, so that the next shows what one part costs.
type part int

const (
	signalPart   part = iota // a context of its own, which SIGKILL ends, for a cause
	questionPart             // the question to its model has a context below that, and ends with it
	exitPart                 // a state and an exit status, under a lock, and a channel that is closed for who waits
	eventsPart               // signal, end and reap in the event log: five events
	pursePart                // a purse, in that of its parent
	tablePart                // an entry in the table, children who are handed on, an event for each, a tombstone
	filesPart                // the question goes through a descriptor; that it was cut off is an event, with its texts
	reapPart                 // all that is released at a reap, by the kernel's own steps
)

var parts = []struct {
	name string
	upTo part
}{
	{"signal", signalPart}, {"question", questionPart}, {"exit", exitPart}, {"events", eventsPart},
	{"purse", pursePart}, {"table", tablePart}, {"files", filesPart}, {"reap", reapPart},
}

// Row 5 in parts: a tree of contexts, trees of bare processes that have one part more each, and one of agents, which
// have a loop besides, are killed in turn, so that a busy moment of the machine touches all of them. It gives the lower
// quartile of the processor time of each, as <name>-cpu-ns: what else runs on the machine only adds to that.
func BenchmarkKillParts1000(b *testing.B) {
	k, asked := benchParked(b, nil)
	names := []string{"contexts"}
	kills := []func(cpu *meter){func(cpu *meter) { killContexts(b, cpu) }}
	for _, p := range parts {
		names = append(names, p.name)
		kills = append(kills, func(cpu *meter) { killBare(b, k, asked, p.upTo, cpu) })
	}
	names = append(names, "agents")
	kills = append(kills, func(cpu *meter) { killProcesses(b, k, asked, false, cpu) })

	took := make([][]time.Duration, len(kills))
	for b.Loop() {
		for i, kill := range kills {
			var cpu meter
			kill(&cpu)
			took[i] = append(took[i], cpu.sum)
		}
	}
	for i, t := range took {
		slices.Sort(t)
		b.ReportMetric(float64(t[len(t)/4].Nanoseconds()), names[i]+"-cpu-ns")
	}
}

// bareTree is a tree of processes without a loop, whose goroutines do what the parts say and nothing else. Of a Process
// only what the parts need is set.
type bareTree struct {
	k     *KernelImpl
	upTo  part
	asked *atomic.Int64  // how many wait for an answer
	procs []*Process     // parents first
	ended chan struct{}  // one for each that has ended, of those that have no exit status
	over  sync.WaitGroup // goroutines
}

// killBare is killContexts for bare processes.
func killBare(b *testing.B, k *KernelImpl, asked *atomic.Int64, upTo part, cpu *meter) {
	b.StopTimer()
	asked.Store(0)
	t := &bareTree{k: k, upTo: upTo, asked: asked, ended: make(chan struct{}, killed)}
	for i := range killed {
		var parent *Process
		if i > 0 {
			parent = t.procs[(i-1)/10]
		}
		p, err := t.spawn(types.PID(i+1), parent)
		if err != nil {
			b.Fatal(err)
		}
		t.procs = append(t.procs, p)
	}
	until(asked, killed)
	runtime.GC()
	b.StartTimer()
	cpu.start()
	t.kill()
	cpu.stop()
	b.StopTimer()
	t.over.Wait()
	if upTo >= reapPart {
		for _, p := range t.procs { // some are the reaper's
			<-p.gone
		}
	}
	if k.table.byPID.Len() > 0 || k.budgets.purses.Has(t.procs[0].UUID) {
		b.Fatal("something is left behind")
	}
	b.StartTimer()
}

// spawn makes a bare process and has it wait.
func (t *bareTree) spawn(pid types.PID, parent *Process) (p *Process, err error) {
	k := t.k
	p = &Process{PID: pid, card: &card{modelPath: "/dev/llm/parked", began: time.Now()}, state: types.StateRunning}
	p.ctx, p.cancel = context.WithCancelCause(context.Background())
	if t.upTo >= exitPart {
		p.left = make(chan struct{})
	}
	if t.upTo >= eventsPart {
		p.UUID = types.NewUUID()
	}
	if t.upTo >= pursePart {
		if parent != nil {
			p.parentUUID = parent.UUID
		}
		k.budgets.open(p, Amount{})
	}
	if t.upTo >= tablePart {
		p.rel.parent = parent
		descend(p, parent)
		if p.PID, p.depth, err = k.table.admit(parent, false); err != nil {
			return nil, err
		}
		if err = k.table.insert(p); err != nil {
			return nil, err
		}
	}
	var request []byte
	if t.upTo >= filesPart {
		request = bytes.Repeat([]byte(`{"request":1}`+"\n"), 4096/14)
		k.vfs.AdmitAs(p.PID, func() vfs.Caller { return p.caller(k) })
		if p.modelFD, err = k.vfs.Open(p.PID, p.modelPath, vfs.OpenReadWrite); err != nil {
			return nil, err
		}
	}
	if t.upTo >= reapPart {
		p.gone = make(chan struct{})
		if p.CtxID, err = k.ctxMgr.CtxAlloc(0); err != nil {
			return nil, err
		}
	}
	p.wg.Add(1)
	t.over.Go(func() { t.live(p, request) })
	return p, nil
}

// live waits for an answer that does not come, and ends. It waits with as much on its stack as an agent has, which
// therefore does not grow when it ends: that would cost more than some of the parts.
func (t *bareTree) live(p *Process, request []byte) {
	cause := deep(t, p, request)
	if t.upTo < exitPart {
		t.ended <- struct{}{}
		return
	}
	t.finish(p, cause)
	if t.upTo >= filesPart {
		t.k.engine.closeAll(p)
	}
	p.wg.Done()
	if t.upTo >= reapPart {
		t.k.reaper.ended(p)
		return
	}
	t.reap(p)
}

// deep is ask on a stack that was used before.
//
//go:noinline
func deep(t *bareTree, p *Process, request []byte) error {
	var used [1600]byte
	used[p.PID%1600] = 1
	cause := t.ask(p, request)
	runtime.KeepAlive(&used)
	return cause
}

// ask puts a question to a model that answers when it is cancelled.
func (t *bareTree) ask(p *Process, request []byte) (cause error) {
	ctx := p.ctx
	if t.upTo >= questionPart {
		var cancel context.CancelCauseFunc
		ctx, cancel = context.WithCancelCause(ctx)
		defer cancel(nil)
	}
	if t.upTo >= filesPart {
		_ = t.k.fds.write(ctx, p, p.modelFD, p.modelPath, request) // it was cut off
	} else {
		model := parked{asked: t.asked}
		_ = model.Write(ctx, request) // likewise
	}
	return context.Cause(p.ctx)
}

func (t *bareTree) finish(p *Process, cause error) {
	now := time.Now()
	exit := exitFor(&loop.End{Cause: cause}, false)
	p.mu.Lock()
	p.exit, p.ended = &exit, now
	if t.upTo >= eventsPart {
		_ = p.transitionLocked(types.StateZombie, t.k.events, now) // it is running
		tellExit(p, t.k.events, now, now.Sub(p.began))
	} else {
		p.state = types.StateZombie
	}
	p.mu.Unlock()
	close(p.left)
}

// reap takes back what the parts have given, for those that have not all of them.
func (t *bareTree) reap(p *Process) {
	if t.upTo >= tablePart {
		children, _ := t.k.table.orphan(p)
		for _, c := range children {
			t.k.events.Put(&event.Event{Kind: event.Reparented, PID: c.PID, UUID: c.UUID})
		}
	}
	if t.upTo >= eventsPart {
		t.k.events.Put(&event.Event{Kind: event.Reaped, PID: p.PID, UUID: p.UUID})
		t.k.reaper.bury(p, time.Now())
	}
	if t.upTo >= tablePart {
		p.tomb = tombstone(p, time.Now())
		t.k.table.remove(p, p.tomb)
	}
	if t.upTo >= pursePart {
		p.purse.Leave()
	}
}

// kill ends the tree and returns when every process has ended.
func (t *bareTree) kill() {
	procs := t.procs
	if t.upTo >= tablePart {
		procs, _ = t.k.table.signalled(types.SIGKILL, nil, t.procs[0])
	}
	if t.upTo >= eventsPart {
		_, _ = t.k.signals.deliver(types.SIGKILL, func(*Process) bool { return true }, procs...)
		procs = nil
	}
	for _, p := range procs {
		p.mu.Lock()
		d := p.sigs.Deliver(types.SIGKILL)
		p.mu.Unlock()
		p.cancel(signalled{d.Signal})
	}
	for _, p := range t.procs {
		if t.upTo >= exitPart {
			<-p.left
		} else {
			<-t.ended
		}
	}
}
