package watch

import (
	"fmt"
	"testing"
	"time"

	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

// crowd is a kernel with many processes, that counts how often it is asked for all of them.
type crowd struct {
	procs map[types.UUID]*kernel.Info
	lists int
}

func (c *crowd) List() (out []kernel.Info) {
	c.lists++
	for _, i := range c.procs {
		out = append(out, *i)
	}
	return out
}

func (c *crowd) Info(types.PID) (kernel.Info, error) {
	return kernel.Info{}, types.Errorf(types.ErrNotFound, "Info", "", "")
}

func (c *crowd) InfoOf(id types.UUID) (kernel.Info, bool) {
	i, ok := c.procs[id]
	if !ok {
		return kernel.Info{}, false
	}
	return *i, true
}

func (*crowd) Listen() *kernel.Listener { return nil }
func (*crowd) Hear(types.UUID, *kernel.Heard, uint64) (said []event.Event, more bool) {
	return nil, false
}

// nothing is an index and an archive without a history.
type nothing struct{ lists *int }

func (n nothing) List() []step.ProcInfo               { *n.lists++; return nil }
func (n nothing) Open() []step.ProcInfo               { *n.lists++; return nil }
func (nothing) Get(types.UUID) (step.ProcInfo, bool)  { return step.ProcInfo{}, false }
func (n nothing) Archived() []step.Archived           { *n.lists++; return nil }
func (nothing) Find(types.UUID) (step.Archived, bool) { return step.Archived{}, false }

// plain shows what is given.
type plain struct{}

func (plain) Living(i *kernel.Info) ipc.Proc {
	return ipc.Proc{ProcStatus: types.ProcStatus{PID: i.PID, UUID: i.UUID, Step: i.Step}, State: i.StateName()}
}
func (plain) Stored(*step.ProcInfo) ipc.Proc { return ipc.Proc{} }
func (plain) Children() map[types.PID]string { return nil }
func (plain) Sessions() []types.UUID         { return nil }

// However many processes there are, a change of one makes a frame of that one, and nothing is listed for it.
func TestAChangeAmongManyListsNothing(t *testing.T) {
	const n = 10_000
	c, lists := &crowd{procs: map[types.UUID]*kernel.Info{}}, 0
	for i := range n {
		id := types.NewUUID()
		c.procs[id] = &kernel.Info{ProcStatus: types.ProcStatus{PID: types.PID(i + 1), UUID: id}, State: types.StateRunning}
	}
	tab := newTable(&Service{Kernel: c, Index: nothing{&lists}, Archive: nothing{&lists}, Looks: plain{}})
	tab.load()
	v := &view{shown: map[types.UUID]struct{}{}, dirty: map[types.UUID]struct{}{}}
	whole := tab.wholeOf(v)
	tab.changed = func(id types.UUID) { v.dirty[id] = struct{}{} }
	before, changes := c.lists+lists, 0
	for id, i := range c.procs {
		if changes++; changes > 100 {
			break
		}
		i.Step++
		tab.at = tab.at.Add(time.Second)
		tab.read(id)
		if g := tab.delta(v); len(g.data) > 2*len(whole.data)/n+500 {
			t.Fatalf("a change makes a frame of %d bytes, and the whole table has %d: %s", len(g.data), len(whole.data), fmt.Sprintf("%.300s", g.data))
		}
	}
	if after := c.lists + lists; after != before || before == 0 {
		t.Errorf("all were listed %d times for %d changes", after-before, changes)
	}
}
