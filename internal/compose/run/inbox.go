package run

import (
	"sync"

	"rnix/internal/compose"
	"rnix/kernel"
	"rnix/types"
)

// inbox is word for a run of what has happened. Nothing that puts something in blocks.
type inbox struct {
	wake chan struct{} // room for one: there is something

	mu     sync.Mutex
	joined []*kernel.Process // +checklocks:mu
	left   []*kernel.Process // +checklocks:mu
	ends   []ending          // +checklocks:mu
}

// ending is the end of a run of a node.
type ending struct {
	key  compose.Key
	p    *kernel.Process
	info kernel.Info
}

func (b *inbox) putJoined(p *kernel.Process) {
	b.mu.Lock()
	b.joined = append(b.joined, p)
	b.mu.Unlock()
	b.poke()
}

func (b *inbox) putLeft(p *kernel.Process) {
	b.mu.Lock()
	b.left = append(b.left, p)
	b.mu.Unlock()
	b.poke()
}

func (b *inbox) putEnd(e ending) {
	b.mu.Lock()
	b.ends = append(b.ends, e)
	b.mu.Unlock()
	b.poke()
}

// poke wakes the run.
func (b *inbox) poke() {
	select {
	case b.wake <- struct{}{}:
	default:
	}
}

func (b *inbox) take() (joined, left []*kernel.Process, ends []ending) {
	b.mu.Lock()
	defer b.mu.Unlock()
	joined, left, ends = b.joined, b.left, b.ends
	b.joined, b.left, b.ends = nil, nil, nil
	return joined, left, ends
}

// Node is what people see of a node.
type Node struct {
	compose.Status
	PID types.PID // of the living process; 0 = there is none
}

// view is what a run shows.
type view struct {
	mu sync.Mutex
	// +checklocks:mu
	nodes []Node // replaced, never changed
}

// Nodes returns what has become of each node, in the order of the plan. Safe for concurrent use.
func (r *Run) Nodes() []Node {
	r.now.mu.Lock()
	defer r.now.mu.Unlock()
	return r.now.nodes
}

// publish shows what has become of the nodes.
func (r *Run) publish() {
	report := r.state.Report()
	nodes := make([]Node, len(report))
	done := 0
	for i, st := range report {
		nodes[i].Status = st
		if p := r.alive[st.Key]; p != nil {
			nodes[i].PID = p.PID
		}
		if _, none := r.unborn[st.Key]; none {
			nodes[i].Phase, nodes[i].Why = compose.Waiting, "as many processes live as may"
		}
		if st.Phase.Final() {
			done++
		}
	}
	r.now.mu.Lock()
	r.now.nodes = nodes
	r.now.mu.Unlock()
	r.self.SetProgress(kernel.Progress{Step: done})
}
