package autoresume

import (
	"sync"

	"rnix/types"
)

// delayed are the histories that are resumed a little later than at the start: those in whose step the daemon has ended before. A client
// that waits for one of them, or follows it, is not told that it is suspended, but waits for its resume. Its lock is a leaf.
type delayed struct {
	mu sync.Mutex
	// +checklocks:mu
	until map[types.UUID]<-chan struct{} // closed when it was resumed, or could not be
}

// put notes histories that are resumed later; over is called when they were, or cannot be.
func (l *delayed) put(ls []left) (over func()) {
	done := make(chan struct{})
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.until == nil {
		l.until = map[types.UUID]<-chan struct{}{}
	}
	for i := range ls {
		l.until[ls[i].info.UUID] = done
	}
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		for i := range ls {
			delete(l.until, ls[i].info.UUID)
		}
		close(done)
	}
}

// of returns what is closed when a history was resumed, or cannot be; nil = it is not delayed.
func (l *delayed) of(id types.UUID) <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.until[id]
}
