// Package mailbox is the queue of messages to one process: bounded, in order, closed when the process
// ends. Senders fill one slice while the receiver works on another, so a receiver takes the lock once
// for everything that has come. It knows no process.
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

	mu     sync.Mutex
	in     []T           // +checklocks:mu; what senders fill
	out    []T           // +checklocks:mu; what the receiver empties, before in
	grown  chan struct{} // +checklocks:mu; closed when something comes; nil when nobody waits
	shrunk chan struct{} // +checklocks:mu; closed when something was taken; nil when nobody waits
	closed bool          // +checklocks:mu
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

func (b *Box[T]) putLocked(v T) error {
	switch {
	case b.closed:
		return ErrClosed
	case len(b.in)+len(b.out) >= b.max():
		return ErrFull
	}
	b.in = append(b.in, v)
	if b.grown != nil {
		close(b.grown)
		b.grown = nil
	}
	return nil
}

// PutWait is Put that waits for room, until ctx ends.
func (b *Box[T]) PutWait(ctx context.Context, v T) error {
	for {
		b.mu.Lock()
		err := b.putLocked(v)
		if err != ErrFull {
			b.mu.Unlock()
			return err
		}
		if b.shrunk == nil {
			b.shrunk = make(chan struct{})
		}
		room := b.shrunk
		b.mu.Unlock()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// Get takes the oldest message, waiting for one until ctx ends. What is left in a closed box can still
// be taken; after that it is ErrClosed.
func (b *Box[T]) Get(ctx context.Context) (v T, err error) {
	for {
		b.mu.Lock()
		if len(b.out) == 0 {
			b.in, b.out = b.out[:0], b.in
		}
		if len(b.out) > 0 {
			v = b.out[0]
			var zero T
			b.out[0] = zero // do not keep it alive
			b.out = b.out[1:]
			if b.shrunk != nil {
				close(b.shrunk)
				b.shrunk = nil
			}
			b.mu.Unlock()
			return v, nil
		}
		if b.closed {
			b.mu.Unlock()
			return v, ErrClosed
		}
		if b.grown == nil {
			b.grown = make(chan struct{})
		}
		come := b.grown
		b.mu.Unlock()
		select {
		case <-come:
		case <-ctx.Done():
			return v, context.Cause(ctx)
		}
	}
}

// Len returns how many messages wait.
func (b *Box[T]) Len() int {
	b.mu.Lock()
	defer b.mu.Unlock()
	return len(b.in) + len(b.out)
}

// Close refuses further messages and wakes everybody. A second call does nothing.
func (b *Box[T]) Close() {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.closed = true
	for _, ch := range []*chan struct{}{&b.grown, &b.shrunk} {
		if *ch != nil {
			close(*ch)
			*ch = nil
		}
	}
}
