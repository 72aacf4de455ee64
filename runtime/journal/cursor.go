package journal

import (
	"context"
	"slices"
	"sync"

	"rnix/types"
)

// Cursor is one reader's place in a journal, under a name that lasts. One goroutine reads and acknowledges;
// the other methods are safe beside it. Close it before its journal.
type Cursor struct {
	j       *Journal
	name    string
	kinds   []string
	reading sync.Mutex // Next
	// Where reading goes on.
	at     place      // +checklocks:reading
	saving sync.Mutex // Ack

	// All guarded by j.mu.
	ready   bool     // unacked is whole; until then nothing after opened goes
	opened  uint64   // what was acknowledged when it was opened
	unacked []uint64 // numbers of the events that this cursor wants and has not acknowledged
	hand    []Event  // what the last Next returned, as far as it is not acknowledged
	lost    Gap      // what was dropped and has not been shown yet; Count 0 = nothing
	dropped int      // events that were dropped in all
	closed  bool
}

// Cursor opens the cursor of a name, which sees events of the given kinds, or all of them. One that is
// new begins at the oldest event that is there. A name has one open cursor at a time, else CONFLICT.
func (j *Journal) Cursor(name string, kinds ...string) (*Cursor, error) {
	if err := checkName(name); err != nil {
		return nil, err
	}
	c := &Cursor{j: j, name: name, kinds: kinds}
	j.mu.Lock()
	switch {
	case j.closed:
		j.mu.Unlock()
		return nil, types.Errorf(types.ErrInvalid, "Cursor", name, "%w", ErrClosed)
	case j.cursors[name] != nil:
		j.mu.Unlock()
		return nil, types.Errorf(types.ErrConflict, "Cursor", name, "the cursor is open already")
	}
	acked, known := j.saved[name]
	if !known {
		acked = j.store.first() - 1
		j.saved[name] = acked // from now on nothing behind it goes
	}
	c.opened = acked
	j.cursors[name] = c // so it hears of new events; those that are there are read below
	to := j.committed
	for _, e := range slices.Concat(j.batch, j.queue) {
		if c.wants(e.Kind) {
			c.unacked = append(c.unacked, e.Seq)
		}
	}
	j.mu.Unlock()
	err := error(nil)
	if !known {
		err = j.store.saveCursor(name, acked)
	}
	var old []uint64
	if err == nil {
		old, err = c.waiting(acked+1, to)
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if err != nil {
		delete(j.cursors, name)
		return nil, err
	}
	c.unacked, c.ready = append(old, c.unacked...), true
	j.skipLocked(c, j.store.first())
	return c, nil
}

// waiting returns the numbers of the events that are wanted.
func (c *Cursor) waiting(from, to uint64) (out []uint64, err error) {
	var at place
	for from <= to {
		events, err := c.j.store.read(&at, from, to, 1000, maxRead, c.wants)
		if err != nil || len(events) == 0 {
			return out, err
		}
		for _, e := range events {
			out = append(out, e.Seq)
		}
		from = events[len(events)-1].Seq + 1
	}
	return out, nil
}

func (c *Cursor) wants(kind string) bool { return wants(c.kinds)(kind) }

// Next returns the oldest events that are not acknowledged, at most max and, but for the first, at most so many
// bytes of data. It waits until there is one. Without an Ack it returns the same again. It ends with the
// context, and with ErrClosed when the cursor or the journal is closed and nothing is left that is durable.
func (c *Cursor) Next(ctx context.Context, max, bytes int) ([]Event, error) {
	if max < 1 {
		return nil, types.Errorf(types.ErrInvalid, "Next", c.name, "%d events are none", max)
	}
	c.reading.Lock()
	defer c.reading.Unlock()
	j := c.j
	for {
		j.mu.Lock()
		switch {
		case c.closed || j.closed:
			j.mu.Unlock()
			return nil, types.Errorf(types.ErrInvalid, "Next", c.name, "%w", ErrClosed)
		case len(c.hand) > 0:
			hand := bounded(c.hand, max, bytes)
			j.mu.Unlock()
			return hand, nil
		case c.lost.Count > 0:
			c.hand, c.lost = []Event{c.lost.event(j.session, j.source, j.now().UTC())}, Gap{}
			j.mu.Unlock()
			continue
		case len(c.unacked) == 0 || c.unacked[0] > j.committed:
			err := j.waitLocked(ctx)
			j.mu.Unlock()
			if err != nil {
				return nil, err
			}
			continue
		}
		from, to := c.unacked[0], j.committed
		j.mu.Unlock()
		events, err := j.store.read(&c.at, from, to, max, bytes, c.wants)
		if err != nil {
			return nil, err
		}
		j.mu.Lock()
		j.skipLocked(c, j.store.first())
		if len(c.unacked) > 0 && c.unacked[0] == from { // else it went while it was read, and the next turn says so
			c.hand = events
			if len(events) == 0 {
				j.mu.Unlock()
				return nil, types.Errorf(types.ErrStorage, "Next", c.name, "event %d is not there any more: its file was removed; put it back, or open the journal anew", from)
			}
		}
		j.mu.Unlock()
	}
}

// bounded returns the beginning of events that is within the bounds, at least one.
func bounded(events []Event, max, bytes int) []Event {
	size := 0
	for i, e := range events {
		size += len(e.Data)
		if i == max || i > 0 && size > bytes {
			return slices.Clone(events[:i])
		}
	}
	return slices.Clone(events)
}

// Ack says that all events up to a number are dealt with, durably: they do not come again. After an error
// they may come again once the journal was opened anew.
func (c *Cursor) Ack(seq uint64) error {
	c.saving.Lock()
	defer c.saving.Unlock()
	j := c.j
	j.mu.Lock()
	if c.closed || j.closed {
		j.mu.Unlock()
		return types.Errorf(types.ErrInvalid, "Ack", c.name, "%w", ErrClosed)
	}
	shown := len(c.hand) > 0 && seq <= c.hand[len(c.hand)-1].Seq // a gap may end at an event that is being written
	if seq > j.committed && !shown {
		committed := j.committed
		j.mu.Unlock()
		return types.Errorf(types.ErrInvalid, "Ack", c.name, "there is no event %d, the last is %d", seq, committed)
	}
	for len(c.unacked) > 0 && c.unacked[0] <= seq {
		c.unacked = c.unacked[1:]
	}
	for len(c.hand) > 0 && c.hand[0].Seq <= seq {
		c.hand = c.hand[1:]
	}
	old := seq <= j.saved[c.name]
	j.announceLocked()
	j.mu.Unlock()
	if old {
		return nil
	}
	if err := j.save(c.name, seq); err != nil {
		return err
	}
	return j.compact()
}

// Pending returns how many events this cursor has still to acknowledge, with those that are not durable yet.
func (c *Cursor) Pending() int {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	return c.j.pendingLocked(c)
}

// +checklocks:j.mu
func (j *Journal) pendingLocked(c *Cursor) int {
	n := len(c.unacked)
	if c.lost.Count > 0 {
		n++ // the entry that says so
	}
	if len(c.hand) > 0 && (n == 0 || c.hand[0].Seq < c.unacked[0]) {
		n++ // such an entry, shown and not acknowledged
	}
	return n
}

// Dropped returns how many events went before this cursor could show them, since it was opened.
func (c *Cursor) Dropped() int {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	return c.dropped
}

// Drained waits until nothing is pending. Errors are those of the context and, if the disk has failed and what
// is pending cannot come any more, that of the disk.
func (c *Cursor) Drained(ctx context.Context) error {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	for c.j.pendingLocked(c) > 0 {
		if c.j.err != nil && (len(c.unacked) == 0 || c.unacked[0] > c.j.committed) {
			return c.j.err
		}
		if c.closed || c.j.closed {
			return types.Errorf(types.ErrInvalid, "Drained", c.name, "%w", ErrClosed)
		}
		if err := c.j.waitLocked(ctx); err != nil {
			return err
		}
	}
	return nil
}

// skipLocked turns what is gone from before first, and was not handed out, into a gap.
//
// +checklocks:j.mu
func (j *Journal) skipLocked(c *Cursor, first uint64) {
	for len(c.unacked) > 0 && c.unacked[0] < first {
		seq := c.unacked[0]
		c.unacked = c.unacked[1:]
		if len(c.hand) > 0 && seq <= c.hand[len(c.hand)-1].Seq {
			continue // whoever reads has it in hand
		}
		if c.lost.Count == 0 {
			c.lost = Gap{From: seq, Reason: "there was no room for them"}
		}
		c.lost.To, c.lost.Count = seq, c.lost.Count+1
		c.dropped++
	}
}

// floorOfLocked returns up to which number a cursor needs nothing.
//
// +checklocks:j.mu
func (j *Journal) floorOfLocked(c *Cursor) uint64 {
	if !c.ready {
		return c.opened
	}
	if len(c.hand) > 0 {
		return c.hand[0].Seq - 1
	}
	if len(c.unacked) > 0 {
		return min(c.unacked[0]-1, j.committed)
	}
	return j.committed
}

// Close ends the cursor: a Next that waits returns. Its place stays.
func (c *Cursor) Close() {
	c.j.mu.Lock()
	defer c.j.mu.Unlock()
	if c.closed {
		return
	}
	c.closed = true
	delete(c.j.cursors, c.name)
	c.j.announceLocked()
}
