package event

import (
	"context"
	"fmt"
	"io"
	"sync"
	"time"

	"rnix/internal/redact"
)

// DefaultCapacity is how many events a Log keeps unless it is told otherwise.
const DefaultCapacity = 8192

// chunk is the number of events that memory is taken for at a time.
const chunk = 128

// Log is the event log: a ring that keeps the last events, numbered without a gap from 1. Safe for
// concurrent use.
//
// Its lock is the last of all: Append may be called while any other lock is held, and should be
// called while the lock is held that guards the change which the event tells of.
type Log struct {
	capacity uint64
	secrets  *redact.Set // what is taken out of events; see Conceal

	mu sync.Mutex
	// +checklocks:mu
	chunks []*[chunk]Event // made when they are first reached
	// +checklocks:mu
	last uint64 // sequence number of the newest event; 0 = none
	// +checklocks:mu
	newest time.Time // time of the newest event
	// +checklocks:mu
	grown  chan struct{} // closed at the next Append or Close; nil while nobody waits
	closed bool          // +checklocks:mu
}

// New returns a log that keeps the last capacity events; 0 or less = DefaultCapacity. Memory is
// taken as the events come.
func New(capacity int) *Log {
	if capacity <= 0 {
		capacity = DefaultCapacity
	}
	n := (capacity + chunk - 1) / chunk
	return &Log{capacity: uint64(capacity), chunks: make([]*[chunk]Event, n)}
}

// Append adds e and returns its sequence number, which it assigns; so it does the time if that is
// zero. No event is older than the one before it: a time that is, is made equal. It never blocks, and
// goes on working after Close. What e points to must not change any more.
func (l *Log) Append(e Event) uint64 { return l.Put(&e) }

// Put is Append for who has the event at a place of its own, and a stack that should not grow by a copy of it.
// It does not keep e, and changes nothing in it.
func (l *Log) Put(e *Event) uint64 {
	if !l.secrets.Empty() {
		e = concealed(e, l.secrets)
	}
	now := e.Time
	if now.IsZero() {
		now = time.Now() // not under the lock, for which others may wait
	}
	l.mu.Lock()
	if now.Before(l.newest) {
		now = l.newest
	}
	l.newest = now
	l.last++
	seq := l.last
	at := l.slotLocked(seq)
	*at = *e
	at.Seq, at.Time = seq, now
	grown := l.grown
	l.grown = nil
	l.mu.Unlock()
	if grown != nil {
		close(grown)
	}
	return seq
}

// +checklocks:l.mu
func (l *Log) slotLocked(seq uint64) *Event {
	i := (seq - 1) % l.capacity
	c := &l.chunks[i/chunk]
	if *c == nil {
		*c = new([chunk]Event)
	}
	return &(*c)[i%chunk]
}

// Last returns the sequence number of the newest event, 0 if there is none.
func (l *Log) Last() uint64 { l.mu.Lock(); defer l.mu.Unlock(); return l.last }

// Oldest returns the sequence number of the oldest event that is still there, or will be.
func (l *Log) Oldest() uint64 { l.mu.Lock(); defer l.mu.Unlock(); return l.oldestLocked() }

// +checklocks:l.mu
func (l *Log) oldestLocked() uint64 {
	if l.last < l.capacity {
		return 1
	}
	return l.last - l.capacity + 1
}

// Close wakes all readers: each gets what is there and then io.EOF.
func (l *Log) Close() {
	l.mu.Lock()
	l.closed = true
	grown := l.grown
	l.grown = nil
	l.mu.Unlock()
	if grown != nil {
		close(grown)
	}
}

// Missed is the error of a reader that came too late for some events. It gets it once for each such
// range, at the place where the events would have been, and can read on.
type Missed struct {
	From, To uint64 // both inclusive
}

// Error names the range.
func (m *Missed) Error() string {
	return fmt.Sprintf("events %d to %d are no longer there: %d missed", m.From, m.To, m.To-m.From+1)
}

// Cursor is the place of one reader. It is for one goroutine. It needs no closing.
type Cursor struct {
	log  *Log
	next uint64
}

// Cursor returns a reader whose first event is the one numbered from. 0 means from now on: the next
// event that is appended; so does a number that is beyond that. Oldest is where all that is still
// there begins.
func (l *Log) Cursor(from uint64) *Cursor {
	l.mu.Lock()
	defer l.mu.Unlock()
	if from == 0 || from > l.last {
		from = l.last + 1
	}
	return &Cursor{log: l, next: from}
}

// Next waits for the next event and returns it. Its errors are a *Missed, after which the cursor
// stands behind the missing range, io.EOF when the log is closed and read to its end, and the cause
// of ctx.
func (c *Cursor) Next(ctx context.Context) (Event, error) {
	var one [1]Event
	_, err := c.Read(ctx, one[:])
	return one[0], err
}

// TryNext returns the next event if there is one. If there is none yet, ok is false and err nil.
func (c *Cursor) TryNext() (e Event, ok bool, err error) {
	var one [1]Event
	n, _, err := c.take(one[:], false)
	return one[0], n == 1, err
}

// Read waits until there is at least one event, and fills buf with as many as there are. Its errors
// are those of Next; with an error it returns no events.
func (c *Cursor) Read(ctx context.Context, buf []Event) (int, error) {
	for {
		n, grown, err := c.take(buf, true)
		if n > 0 || err != nil {
			return n, err
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
}

// More returns a channel that is closed when there is something to read, or the log is closed.
func (c *Cursor) More() <-chan struct{} {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if c.next <= l.last || l.closed {
		return always
	}
	if l.grown == nil {
		l.grown = make(chan struct{})
	}
	return l.grown
}

// always is closed.
var always = func() chan struct{} { c := make(chan struct{}); close(c); return c }()

// TryRead is Read that does not wait: it returns 0 if there is nothing yet.
func (c *Cursor) TryRead(buf []Event) (int, error) {
	n, _, err := c.take(buf, false)
	return n, err
}

// Pos returns the sequence number that is read next, unless it is overwritten before.
func (c *Cursor) Pos() uint64 { return c.next }

// take copies events into buf. If there are none and wait is set, it returns a channel that is
// closed when there are.
func (c *Cursor) take(buf []Event, wait bool) (n int, grown <-chan struct{}, err error) {
	l := c.log
	l.mu.Lock()
	defer l.mu.Unlock()
	if oldest := l.oldestLocked(); c.next < oldest {
		m := &Missed{From: c.next, To: oldest - 1}
		c.next = oldest
		return 0, nil, m
	}
	for n < len(buf) && c.next <= l.last {
		buf[n] = *l.slotLocked(c.next)
		n++
		c.next++
	}
	if n > 0 || len(buf) == 0 {
		return n, nil, nil
	}
	if l.closed {
		return 0, nil, io.EOF
	}
	if wait && l.grown == nil {
		l.grown = make(chan struct{})
	}
	return 0, l.grown, nil
}
