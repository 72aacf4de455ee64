// Package mailbox is the queue of messages to one process: bounded, in order, closed when the process
// ends. Senders fill one slice while the receiver works on another, so that neither moves what the other
// has. It knows no process.
package mailbox

import (
	"context"
	"errors"
	"sync"
)

// The errors of a Box.
var (
	ErrFull   = errors.New("the mailbox is full")
	ErrClosed = errors.New("the mailbox is closed")
)

// Box is a queue for many senders and one receiver at a time. The zero value is open, empty, and
// bounded by DefaultMax. Its lock is a leaf.
type Box[T any] struct {
	Max int // messages; 0 = DefaultMax. Set before use.

	mu sync.Mutex
	// What senders fill.
	in []T // +checklocks:mu
	// What the receiver empties, before in.
	out []T // +checklocks:mu
	// How many of out are gone.
	taken int // +checklocks:mu
	// Waits for a message or the end.
	grown queue // +checklocks:mu
	// Waits for room or the end.
	shrunk queue // +checklocks:mu
	closed bool  // +checklocks:mu

	// Closed when something comes or goes, or the box is closed; nil when nobody looks.
	change chan struct{} // +checklocks:mu
}

// DefaultMax is the bound of a Box in messages.
const DefaultMax = 1024

func (b *Box[T]) max() int {
	if b.Max > 0 {
		return b.Max
	}
	return DefaultMax
}

// Put adds a message. A full box is ErrFull, a closed one ErrClosed.
func (b *Box[T]) Put(v T) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.putLocked(v)
}

// +checklocks:b.mu
func (b *Box[T]) putLocked(v T) error {
	switch {
	case b.closed:
		return ErrClosed
	case b.lenLocked() >= b.max():
		return ErrFull
	}
	b.in = append(b.in, v)
	b.grown.wake()
	b.changedLocked()
	return nil
}

// PutWait is Put that waits for room, until ctx ends.
func (b *Box[T]) PutWait(ctx context.Context, v T) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		err := b.putLocked(v)
		if err != ErrFull {
			return err
		}
		if err := b.shrunk.wait(ctx, &b.mu); err != nil {
			return err
		}
	}
}

// Get takes the oldest message, waiting for one until ctx ends. What is left in a closed box can still
// be taken; after that it is ErrClosed.
func (b *Box[T]) Get(ctx context.Context) (v T, err error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for {
		if b.taken == len(b.out) {
			b.in, b.out, b.taken = b.out[:0], b.in, 0
		}
		if b.taken < len(b.out) {
			v = b.out[b.taken]
			var zero T
			b.out[b.taken] = zero // do not keep it alive
			b.taken++
			b.shrunk.wake()
			b.changedLocked()
			return v, nil
		}
		if b.closed {
			return v, ErrClosed
		}
		if err := b.grown.wait(ctx, &b.mu); err != nil {
			return v, err
		}
	}
}

// Len returns how many messages wait.
func (b *Box[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.lenLocked()
}

// +checklocks:b.mu
func (b *Box[T]) lenLocked() int { return len(b.in) + len(b.out) - b.taken }

// Close refuses further messages and wakes everybody. A second call does nothing.
func (b *Box[T]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closeLocked()
}

// +checklocks:b.mu
func (b *Box[T]) closeLocked() {
	if b.closed {
		return
	}
	b.changedLocked()
	b.closed = true
	for b.grown.wake() {
	}
	for b.shrunk.wake() {
	}
}
