package storage

import (
	"slices"
	"sync"
	"time"

	"rnix/ipc"
	"rnix/types"
)

// works is the long work on histories that is under way.
type works struct {
	mu   sync.Mutex
	list []*work // +checklocks:mu
}

// work is one piece of it; nil is none. Its fields belong to the works.
type work struct {
	all *works
	at  ipc.Work
}

func (w *works) begin(method string) *work {
	n := &work{w, ipc.Work{Method: method, Since: time.Now()}}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.list = append(w.list, n)
	return n
}

func (w *works) all() []ipc.Work {
	w.mu.Lock()
	defer w.mu.Unlock()
	out := make([]ipc.Work, 0, len(w.list))
	for _, n := range w.list {
		out = append(out, n.at)
	}
	return out
}

// of says how many histories there are to look at.
func (n *work) of(total int) {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.at.Total = total
}

// next says which history comes now.
func (n *work) next(done int, id types.UUID) {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.at.Done, n.at.At = done, id.String()
}

func (n *work) end() {
	n.all.mu.Lock()
	defer n.all.mu.Unlock()
	n.all.list = slices.DeleteFunc(n.all.list, func(x *work) bool { return x == n })
}
