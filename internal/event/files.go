package event

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/durable"
	"rnix/types"
)

const (
	maxOpenFiles = 256
	syncEvery    = time.Second
	retryAfter   = 10 * time.Second
)

// Files writes the events of each history to its events.jsonl. It is one reader of the log like any
// other, so it holds nobody up: if it falls behind, the file says which events are missing, in a
// line of kind Lag. Lines are synced at most once a second (class D1). A file that cannot be written
// is reported as a StorageError event and tried again ten seconds later.
//
// Events without a UUID belong to no history and are not written. Everything below written is exclusive to
// the one goroutine.
type Files struct {
	log    *Log
	fs     durable.FS
	path   func(types.UUID) string
	cancel context.CancelFunc
	done   sync.WaitGroup

	written atomic.Uint64 // anybody may read it

	cursor  *Cursor
	open    map[types.UUID]*file
	bad     map[types.UUID]*outage
	missed  *Missed             // all that this reader has missed, as one range; nil = nothing
	told    map[types.UUID]bool // whose files say so
	flushed time.Time           // last sync
	dirty   bool                // there is something to sync
}

// file is an open events.jsonl.
type file struct {
	log     *durable.Log
	pid     types.PID
	pending []byte // lines of the current batch
	first   uint64 // first event in pending
	since   uint64 // first event that is not synced; 0 = all are
	used    uint64 // last event
}

// outage is a file that could not be written.
type outage struct {
	until    time.Time
	from, to uint64 // events that it has missed
}

// WriteFiles starts to write what is appended to log from now on; path says where. Close ends it.
func WriteFiles(log *Log, fsys durable.FS, path func(types.UUID) string) *Files {
	ctx, cancel := context.WithCancel(context.Background())
	f := &Files{
		log: log, fs: fsys, path: path, cancel: cancel, cursor: log.Cursor(0),
		open: map[types.UUID]*file{}, bad: map[types.UUID]*outage{}, flushed: time.Now(),
	}
	f.written.Store(f.cursor.Pos() - 1)
	f.done.Go(func() { f.run(ctx) }) // ends with Close or with the log; Close waits for it
	return f
}

// Path returns where the events of a history are.
func (f *Files) Path(id types.UUID) string { return f.path(id) }

// Close writes and syncs what has been appended before it was called, and closes all files.
func (f *Files) Close() error {
	f.cancel()
	f.done.Wait()
	return nil
}

// Written returns the number of the last event that was written, or that is said to be missing where it
// belongs: the files have all up to it that they ever will.
func (f *Files) Written() uint64 { return f.written.Load() }

func (f *Files) run(ctx context.Context) {
	buf := make([]Event, 128)
	for {
		n, err := f.read(ctx, buf)
		var missed *Missed
		switch {
		case err == nil:
			f.write(buf[:n])
			f.written.Store(f.cursor.Pos() - 1)
		case errors.As(err, &missed):
			f.lag(missed)
			f.written.Store(f.cursor.Pos() - 1)
		case !errors.Is(err, context.DeadlineExceeded): // Close, or the end of the log
			f.finish(buf)
			return
		}
		if f.dirty && time.Since(f.flushed) >= syncEvery {
			f.sync()
		}
	}
}

// read waits for events, but not beyond the time of the next sync.
func (f *Files) read(ctx context.Context, buf []Event) (int, error) {
	if n, _, err := f.cursor.take(buf, false); n > 0 || err != nil {
		return n, err
	}
	if f.dirty {
		until, cancel := context.WithDeadline(ctx, f.flushed.Add(syncEvery))
		defer cancel()
		return f.cursor.Read(until, buf)
	}
	return f.cursor.Read(ctx, buf)
}

// finish writes what is in the log now and closes all files.
func (f *Files) finish(buf []Event) {
	for last := f.log.Last(); f.cursor.Pos() <= last; {
		n, _, err := f.cursor.take(buf, false)
		if missed := (*Missed)(nil); errors.As(err, &missed) {
			f.lag(missed)
		}
		f.write(buf[:n])
	}
	f.sync()
	for id, x := range f.open {
		x.log.Close()
		delete(f.open, id)
	}
}

// write appends a batch: one write for each history that is in it.
func (f *Files) write(events []Event) {
	var ended []types.UUID
	for i := range events {
		e := &events[i]
		if e.UUID == (types.UUID{}) {
			continue
		}
		x := f.file(e)
		if x == nil {
			continue
		}
		if len(x.pending) == 0 {
			x.first = e.Seq
		}
		x.pending = append(AppendJSON(x.pending, e), '\n')
		x.used = e.Seq
		if e.Kind == Reaped {
			ended = append(ended, e.UUID)
		}
		events[i] = Event{} // let go of the texts
	}
	for id, x := range f.open {
		f.flush(id, x)
	}
	for _, id := range ended {
		if x := f.open[id]; x != nil {
			f.syncFile(id, x)
			x.log.Close()
			delete(f.open, id)
		}
	}
}

// file returns the open file of e's history, or nil if there is none to be had now.
func (f *Files) file(e *Event) *file {
	if x := f.open[e.UUID]; x != nil {
		return x
	}
	out := f.bad[e.UUID]
	if out != nil && time.Now().Before(out.until) {
		out.to = e.Seq
		return nil
	}
	if len(f.open) >= maxOpenFiles {
		f.evict()
	}
	log, _, err := durable.OpenLog(f.fs, f.path(e.UUID), nil)
	if err != nil {
		f.fail(e.UUID, e.PID, e.Seq, e.Seq, err)
		return nil
	}
	x := &file{log: log, pid: e.PID}
	f.open[e.UUID] = x
	if out != nil {
		x.lag(out.from, out.to, e)
		delete(f.bad, e.UUID)
	}
	if f.missed != nil && !f.told[e.UUID] {
		f.told[e.UUID] = true
		if e.Kind != Spawned {
			x.lag(f.missed.From, f.missed.To, e)
		}
	}
	return x
}

// lag writes a line that says which events are missing.
func (x *file) lag(from, to uint64, e *Event) {
	if len(x.pending) == 0 {
		x.first = from
	}
	x.pending = append(AppendJSON(x.pending, &Event{
		Seq: to, Time: e.Time, PID: e.PID, UUID: e.UUID, Kind: Lag,
		Text: fmt.Sprintf(lagText, from, to),
	}), '\n')
}

// lag notes that this reader has missed events: the open files say so at once, the others when they
// are opened.
func (f *Files) lag(m *Missed) {
	if f.missed == nil {
		f.missed = m
	} else {
		f.missed = &Missed{From: f.missed.From, To: m.To}
	}
	f.told = map[types.UUID]bool{}
	for id, x := range f.open {
		x.lag(m.From, m.To, &Event{Time: time.Now(), PID: x.pid, UUID: id})
		f.told[id] = true
	}
}

// evict closes the file that was not used for the longest time. Its bytes are with the system, which
// writes them out in its own time.
func (f *Files) evict() {
	var oldest types.UUID
	var at *file
	for id, x := range f.open {
		if at == nil || x.used < at.used {
			oldest, at = id, x
		}
	}
	f.flush(oldest, at)
	if f.open[oldest] == at {
		at.log.Close()
		delete(f.open, oldest)
	}
}

func (f *Files) flush(id types.UUID, x *file) {
	if len(x.pending) == 0 {
		return
	}
	if err := x.log.Append(x.pending); err != nil {
		f.drop(id, x, x.first, err)
		return
	}
	x.pending, f.dirty = x.pending[:0], true
	if x.since == 0 {
		x.since = max(x.first, 1)
	}
}

func (f *Files) sync() {
	for id, x := range f.open {
		f.flush(id, x)
		f.syncFile(id, x)
	}
	f.dirty, f.flushed = false, time.Now()
}

func (f *Files) syncFile(id types.UUID, x *file) {
	if x.since == 0 {
		return
	}
	if err := x.log.Sync(); err != nil {
		f.drop(id, x, x.since, err)
	}
	x.since = 0
}

// drop gives up a file whose disk has failed; the events from the one numbered from on may be lost.
func (f *Files) drop(id types.UUID, x *file, from uint64, err error) {
	x.log.Close()
	delete(f.open, id)
	f.fail(id, x.pid, from, x.used, err)
}

// fail reports a file and puts it aside for a while.
func (f *Files) fail(id types.UUID, pid types.PID, from, to uint64, err error) {
	out := f.bad[id]
	if out == nil {
		out = &outage{from: from}
		f.bad[id] = out
	}
	out.to, out.until = to, time.Now().Add(retryAfter)
	f.log.Append(Event{PID: pid, UUID: id, Kind: StorageError, Path: f.path(id), Err: err.Error(), Code: types.CodeOf(err)})
}
