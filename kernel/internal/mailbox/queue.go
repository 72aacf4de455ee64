package mailbox

import (
	"context"
	"sync"
)

// queue is those who wait for one thing, first come, first served. Each wake is for one of them, so a
// thousand senders are not woken for one free place. Guarded by the lock that is handed to wait.
//
// Who waits alone, again and again, uses the same waiter: waiting costs no memory then.
type queue struct {
	first, last *waiter
	spare       *waiter
}

type waiter struct {
	woken chan struct{} // room for one
	next  *waiter
}

// wake wakes who has waited longest, and reports whether there was anybody. It never blocks.
func (q *queue) wake() bool {
	w := q.first
	if w == nil {
		return false
	}
	if q.first = w.next; q.first == nil {
		q.last = nil
	}
	w.next = nil
	w.woken <- struct{}{}
	return true
}

// wait waits to be woken, without the lock, until ctx ends, and then returns its cause. mu is held before
// and after.
//
// +checklocks:mu
func (q *queue) wait(ctx context.Context, mu *sync.Mutex) error {
	w := q.spare
	if q.spare = nil; w == nil {
		w = &waiter{woken: make(chan struct{}, 1)}
	}
	if q.last == nil {
		q.first = w
	} else {
		q.last.next = w
	}
	q.last = w
	mu.Unlock()

	var err error
	if done := ctx.Done(); done == nil {
		<-w.woken
		mu.Lock()
	} else {
		select {
		case <-w.woken:
			mu.Lock()
		case <-done:
			mu.Lock()
			if err = context.Cause(ctx); !q.remove(w) { // woken in the same moment: that is for the next
				<-w.woken
				q.wake()
			}
		}
	}
	q.spare = w
	return err
}

// remove takes w out of the queue, and reports whether it was in it.
func (q *queue) remove(w *waiter) bool {
	var before *waiter
	for at := q.first; at != nil; before, at = at, at.next {
		if at != w {
			continue
		}
		if before == nil {
			q.first = w.next
		} else {
			before.next = w.next
		}
		if q.last == w {
			q.last = before
		}
		w.next = nil
		return true
	}
	return false
}
