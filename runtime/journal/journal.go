// Package journal keeps the events of one session until everybody who wants them has them. Events are
// appended durably, with numbers that have no gap and with IDs by which a receiver drops what comes
// twice. Any number of named cursors read them, each at its own pace; what a cursor has acknowledged it
// does not see again, not even after a crash. What all cursors have acknowledged is removed.
//
// It owns the order of events and what was acknowledged. It does not know what the events mean, nor where
// they go.
//
// Without a directory it keeps the same promises in memory, but for the crash: its room is bounded, and
// what it had to drop is counted and shown in its place as an entry of kind "gap".
//
// Locks: Cursor.reading > Cursor.saving > Journal.saving > Journal.mu. No disk under Journal.mu; one goroutine at a time writes.
package journal

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

// Options say what a journal is of and where it lies. Session is required.
type Options struct {
	Session string
	// Dir is the directory of this journal alone; it is made if it is missing. "" = in memory.
	Dir string
	// Source names who writes, so that two owners of one session have different events. "" = made up,
	// and kept in the directory.
	Source string
	FS     durable.FS   // nil = the file system of the machine
	Logger *slog.Logger // nil = slog.Default; it is told of damage that was mended
	// SegmentBytes is how large a file grows before the next one begins; what is acknowledged goes a
	// file at a time. 0 = 1 MiB.
	SegmentBytes int64
	// MaxEvents and MaxBytes bound a journal in memory. 0 = 4096 events, 8 MiB.
	MaxEvents int
	MaxBytes  int64
}

// maxQueued is how many bytes may wait for the disk before Post waits too.
const maxQueued = 4 << 20

// ErrClosed is in the chain of what a closed journal answers.
var ErrClosed = errors.New("the journal is closed")

// Journal is the events of one session. Safe for concurrent use. Close it.
type Journal struct {
	session string
	source  string
	now     func() time.Time
	store   store

	saving sync.Mutex // save

	mu sync.Mutex
	// Events that are numbered and not yet written.
	queue []Event // +checklocks:mu
	// Events that are being written.
	batch []Event // +checklocks:mu
	// Bytes in queue.
	queued int64 // +checklocks:mu
	// The number of the newest event.
	last uint64 // +checklocks:mu
	// Everything up to here is there after a crash.
	committed uint64 // +checklocks:mu
	// Closed when committed, a cursor or err changes, and replaced.
	changed chan struct{} // +checklocks:mu
	// A goroutine writes.
	writing bool // +checklocks:mu
	// The first error of the disk: nothing is appended after it.
	err    error // +checklocks:mu
	closed bool  // +checklocks:mu
	// The open cursors.
	cursors map[string]*Cursor // +checklocks:mu
	// What each cursor has acknowledged on disk, open or not.
	saved map[string]uint64 // +checklocks:mu

	writer sync.WaitGroup // the goroutine that writes; it ends when nothing waits
}

// store is where events lie. write is called by one goroutine at a time, all others beside it.
type store interface {
	// write makes events durable, all of them or, after an error, none that anybody was told of.
	write(events []Event) error
	// read returns events from number from to number to that want accepts, at most max of them and,
	// but for the first, at most bytes of data. What is gone is reported as an event of kind gap.
	read(at *place, from, to uint64, max int, bytes int, want func(kind string) bool) ([]Event, error)
	// first returns the number of the oldest event that is there, or would be.
	first() uint64
	// releases reports whether release would let anything go.
	releases(upTo uint64) bool
	// release lets events go up to a number that everybody has acknowledged.
	release(upTo uint64) error
	saveCursor(name string, acked uint64) error
	forget(name string) error
	close() error
}

// Open opens a journal and mends what a crash has torn. The directory belongs to one process at a time: CONFLICT
// names who has it. One of another session is INVALID, damage that is no torn end STORAGE.
func Open(opt Options) (*Journal, error) {
	if opt.Session == "" {
		return nil, types.Errorf(types.ErrInvalid, "Open", opt.Dir, "a journal needs the name of its session")
	}
	if opt.FS == nil {
		opt.FS = durable.OS
	}
	if opt.Logger == nil {
		opt.Logger = slog.Default()
	}
	if opt.SegmentBytes <= 0 {
		opt.SegmentBytes = 1 << 20
	}
	if opt.MaxEvents <= 0 {
		opt.MaxEvents = 4096
	}
	if opt.MaxBytes <= 0 {
		opt.MaxBytes = 8 << 20
	}
	j := &Journal{session: opt.Session, source: opt.Source, now: time.Now, changed: make(chan struct{}),
		cursors: map[string]*Cursor{}, saved: map[string]uint64{}}
	if opt.Dir == "" {
		if j.source == "" {
			j.source = newSource()
		}
		j.store = &memory{maxEvents: opt.MaxEvents, maxBytes: opt.MaxBytes, session: j.session, source: j.source, begin: 1}
		return j, nil
	}
	f, err := openFiles(opt)
	if err != nil {
		return nil, err
	}
	j.store, j.source, j.saved = f, f.source, f.cursors
	j.last, j.committed = f.next-1, f.next-1
	return j, nil
}

// Draft is an event that is to be appended.
type Draft struct {
	Kind string
	Data any // what encoding/json can write
}

// Append appends events and returns when all of them are durable, in one write. Events of several callers
// share a sync. Bad drafts are INVALID, and then nothing is appended; an error of the disk is STORAGE, and then
// nobody can say whether they are there: the journal takes no more until it is opened again.
func (j *Journal) Append(ctx context.Context, drafts ...Draft) ([]Event, error) {
	events, err := j.enqueue(ctx, drafts)
	if err != nil || len(events) == 0 {
		return nil, err
	}
	last := events[len(events)-1].Seq
	for {
		j.mu.Lock()
		committed, err, changed := j.committed, j.err, j.changed
		j.mu.Unlock()
		switch {
		case committed >= last:
			return events, nil
		case err != nil:
			return nil, err
		}
		<-changed // the disk answers, well or ill; the caller's context cannot take back what is being written
	}
}

// Post appends an event without waiting for the disk, and so may lose it in a crash; it is shown to cursors
// only once it is durable, so nobody has seen what was lost. It waits only while 4 MiB wait for the disk. Errors are
// those of Append.
func (j *Journal) Post(ctx context.Context, kind string, data any) error {
	_, err := j.enqueue(ctx, []Draft{{kind, data}})
	return err
}

// enqueue gives drafts their numbers and sees to it that somebody writes them.
func (j *Journal) enqueue(ctx context.Context, drafts []Draft) ([]Event, error) {
	events := make([]Event, len(drafts))
	size := int64(0)
	for i, d := range drafts {
		data, err := json.Marshal(d.Data)
		switch {
		case err != nil:
			return nil, types.Errorf(types.ErrInvalid, "Append", j.session, "%s: %w", d.Kind, err)
		case d.Kind == "" || d.Kind == KindGap:
			return nil, types.Errorf(types.ErrInvalid, "Append", j.session, "%q is no kind of an event", d.Kind)
		case len(data) > MaxEvent:
			return nil, types.Errorf(types.ErrInvalid, "Append", j.session, "%s: %d bytes are over the limit of %d", d.Kind, len(data), MaxEvent)
		}
		events[i] = Event{Kind: d.Kind, Data: data}
		size += int64(len(data))
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	for j.queued > maxQueued && j.err == nil && !j.closed {
		if err := j.waitLocked(ctx); err != nil {
			return nil, err
		}
	}
	if j.err != nil {
		return nil, j.err
	}
	if j.closed {
		return nil, types.Errorf(types.ErrInvalid, "Append", j.session, "%w", ErrClosed)
	}
	for i := range events {
		j.last++
		events[i].Seq, events[i].ID, events[i].Time = j.last, eventID("evt_", j.session, j.source, j.last), j.now().UTC()
		for _, c := range j.cursors {
			if c.wants(events[i].Kind) {
				c.unacked = append(c.unacked, j.last)
			}
		}
	}
	j.queue, j.queued = append(j.queue, events...), j.queued+size
	if !j.writing && len(j.queue) > 0 {
		j.writing = true
		j.writer.Go(j.write) // ends when nothing waits or the disk fails; Close waits for it
	}
	return events, nil
}

// write writes what waits, until nothing does.
func (j *Journal) write() {
	j.mu.Lock()
	defer j.mu.Unlock()
	for len(j.queue) > 0 && j.err == nil {
		batch := j.queue
		j.batch, j.queue, j.queued = batch, nil, 0
		j.mu.Unlock()
		err := j.store.write(batch)
		j.mu.Lock()
		j.batch = nil
		if err != nil {
			j.err = err
		} else {
			j.committed = batch[len(batch)-1].Seq
			first := j.store.first()
			for _, c := range j.cursors { // the store may have dropped what they did not get to
				j.skipLocked(c, first)
			}
		}
		j.announceLocked()
	}
	j.writing = false
}

// +checklocks:j.mu
func (j *Journal) announceLocked() {
	close(j.changed)
	j.changed = make(chan struct{})
}

// waitLocked waits for a change, without the lock.
//
// +checklocks:j.mu
func (j *Journal) waitLocked(ctx context.Context) error {
	changed := j.changed
	j.mu.Unlock()
	defer j.mu.Lock()
	select {
	case <-changed:
		return nil
	case <-ctx.Done():
		return types.Errorf(types.ErrCancelled, "Wait", j.session, "%w", context.Cause(ctx))
	}
}

// Session returns whose events these are.
func (j *Journal) Session() string { return j.session }

// Source returns who writes: what was given to Open, or what was made up.
func (j *Journal) Source() string { return j.source }

// Last returns the number of the newest durable event; 0 if there was none.
func (j *Journal) Last() uint64 {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.committed
}

// Err returns the error of the disk after which nothing more is appended, or nil.
func (j *Journal) Err() error {
	j.mu.Lock()
	defer j.mu.Unlock()
	return j.err
}

// Read returns durable events after a number, at most max, of the kinds given or of all; with no regard to
// cursors. Events that are gone are shown as a gap.
func (j *Journal) Read(after uint64, max int, kinds ...string) ([]Event, error) {
	j.mu.Lock()
	to, closed := j.committed, j.closed
	j.mu.Unlock()
	if closed {
		return nil, types.Errorf(types.ErrInvalid, "Read", j.session, "%w", ErrClosed)
	}
	if after >= to || max <= 0 {
		return nil, nil
	}
	var at place
	return j.store.read(&at, after+1, to, max, maxRead, wants(kinds))
}

// maxRead bounds one answer of Read in bytes of data.
const maxRead = 16 << 20

func wants(kinds []string) func(string) bool {
	return func(kind string) bool { return len(kinds) == 0 || kind == KindGap || slices.Contains(kinds, kind) }
}

// Close writes what waits and closes the journal; cursors that wait end with ErrClosed.
func (j *Journal) Close() error {
	j.mu.Lock()
	if j.closed {
		j.mu.Unlock()
		return nil
	}
	j.closed = true
	j.announceLocked()
	j.mu.Unlock()
	j.writer.Wait()
	return errors.Join(j.Err(), j.store.close())
}

func (g Gap) event(session, source string, at time.Time) Event {
	data, err := json.Marshal(g)
	if err != nil { // two numbers and a text
		panic(fmt.Sprintf("journal: %v", err))
	}
	return Event{Seq: g.To, ID: eventID("gap_", session, source, g.To), Time: at, Kind: KindGap, Data: data}
}
