package watch

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"time"

	"rnix/internal/procview"
	"rnix/ipc"
	"rnix/types"
)

// table is the rows as they were read last, each encoded once. It is for one goroutine.
type table struct {
	w     *Service
	all   bool // with those that have ended
	seq   uint64
	at    time.Time
	rows  map[types.UUID]*row
	sum   tally
	rev   uint64 // grows with each change of a row
	store uint64 // grows when a row comes to those on disk, or leaves them

	changed func(types.UUID)        // is told of each row that has changed
	fresh   map[types.UUID]struct{} // those that have ended, and have their text for whom it is still to be shown
}

// row is a process in the table. The text of what has ended is kept only until all views have shown what was read: it is
// read again when somebody new wants it.
type row struct {
	id     types.UUID
	pid    types.PID
	state  string
	stored bool // only on disk
	ticks  bool // its time goes on
	sum    tally

	head, tail []byte    // its JSON, around how long it has lived
	elapsed    int64     // ms, when it was read
	read       time.Time // then
}

func newTable(w *Service) *table {
	return &table{w: w, rows: map[types.UUID]*row{}, changed: func(types.UUID) {}, fresh: map[types.UUID]struct{}{}}
}

// load reads everything into an empty table.
func (t *table) load() {
	for _, i := range t.w.Kernel.List() {
		p := t.w.Looks.Living(&i)
		t.put(rowOf(&p, false))
	}
	list := t.w.Index.Open()
	if t.all {
		list = t.w.Index.List()
	}
	for i := range list {
		if t.rows[list[i].UUID] != nil {
			continue
		}
		if p := t.w.Looks.Stored(&list[i]); t.all || p.State == procview.Suspended {
			t.put(rowOf(&p, true))
		}
	}
	if !t.all {
		return
	}
	for _, a := range t.w.Archive.Archived() {
		if t.rows[a.Info.UUID] == nil {
			p := procview.InArchive(&a)
			t.put(rowOf(&p, true))
		}
	}
}

// reload reads everything again, when it is not known what has changed.
func (t *table) reload() {
	fresh := newTable(t.w)
	fresh.all = t.all
	fresh.load()
	for id := range t.rows {
		if fresh.rows[id] == nil {
			t.drop(id)
		}
	}
	for _, r := range fresh.rows {
		t.enter(r)
	}
}

// cover makes the table hold what has ended, too, or no more.
func (t *table) cover(all bool) {
	if t.all == all {
		return
	}
	if t.all = all; all {
		t.reload()
		return
	}
	for id, r := range t.rows {
		if settled(r.state) {
			t.drop(id)
		}
	}
}

// read reads a row again.
func (t *table) read(id types.UUID) {
	p, stored, ok := t.w.row(id, t.all)
	if !ok {
		t.drop(id)
		return
	}
	r := rowOf(&p, stored)
	if r.head == nil { // all who are shown this look are shown the same, at whatever pace
		r.head, r.tail = encodeRow(&p)
		t.fresh[id] = struct{}{}
	}
	t.enter(r)
}

// release drops the texts of what has ended that no view has still to show.
func (t *table) release(views map[ipc.WatchRequest]*view) {
	for id := range t.fresh {
		owed := false
		for _, v := range views {
			_, due := v.dirty[id]
			owed = owed || due
		}
		if r := t.rows[id]; owed && r != nil {
			continue
		} else if r != nil && settled(r.state) {
			r.head, r.tail = nil, nil
		}
		delete(t.fresh, id)
	}
}

// enter puts a row in, and tells of it if it has changed.
func (t *table) enter(r *row) {
	if was := t.rows[r.id]; was != nil && r.head != nil && was.stored == r.stored && bytes.Equal(was.head, r.head) && bytes.Equal(was.tail, r.tail) {
		was.elapsed, was.read = r.elapsed, r.read
		return
	}
	t.put(r)
	t.rev++
	t.changed(r.id)
}

func (t *table) put(r *row) {
	was := t.rows[r.id]
	if was != nil {
		t.sum.plus(&was.sum, -1)
	}
	if was == nil && r.stored || was != nil && (was.stored != r.stored || was.state != r.state) {
		t.store++
	}
	t.rows[r.id] = r
	t.sum.plus(&r.sum, 1)
}

func (t *table) drop(id types.UUID) {
	r := t.rows[id]
	if r == nil {
		return
	}
	delete(t.rows, id)
	t.sum.plus(&r.sum, -1)
	if r.stored {
		t.store++
	}
	t.rev++
	t.changed(id)
}

// elapsedKey stands before how long a process has lived. Within a string of JSON it would have backslashes.
var elapsedKey = []byte(`"elapsed_ms":`)

// rowOf makes a row of a process as it is now.
func rowOf(p *ipc.Proc, stored bool) *row {
	r := &row{id: p.UUID, pid: p.PID, ticks: ticks(p), state: p.State, stored: stored, elapsed: p.ElapsedMs, read: time.Now()}
	r.sum.add(p, 1)
	if !settled(p.State) {
		r.head, r.tail = encodeRow(p)
	}
	return r
}

// encodeRow returns the JSON of a process in two parts, between which stands how long it has lived.
func encodeRow(p *ipc.Proc) (head, tail []byte) {
	q := *p
	q.ElapsedMs = 0
	var b bytes.Buffer
	enc := json.NewEncoder(&b)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(&q); err != nil { // a time beyond the year 9999: the least that there is to say
		b.Reset()
		_ = enc.Encode(&ipc.Proc{ProcStatus: types.ProcStatus{PID: p.PID, UUID: p.UUID, PPID: p.PPID, Intent: p.Intent}, State: p.State})
	}
	text := bytes.TrimSuffix(b.Bytes(), []byte("\n"))
	i := bytes.Index(text, elapsedKey) + len(elapsedKey)
	return slices.Clip(text[:i]), slices.Clip(text[i+1:]) // between them a 0
}

// appendRow appends the JSON of a row as of the table's time. It reports false if the row is no longer there.
func (t *table) appendRow(b []byte, r *row) ([]byte, bool) {
	head, tail, elapsed := r.head, r.tail, r.elapsed
	if head == nil {
		p, _, ok := t.w.row(r.id, true)
		if !ok {
			return b, false
		}
		head, tail = encodeRow(&p)
		elapsed = p.ElapsedMs
	}
	if r.ticks {
		elapsed += t.at.Sub(r.read).Milliseconds()
	}
	b = append(b, head...)
	b = strconv.AppendInt(b, elapsed, 10)
	return append(b, tail...), true
}

// byPID is the order of a whole frame.
func byPID(a, b *row) int { return cmp.Or(cmp.Compare(a.pid, b.pid), bytes.Compare(a.id[:], b.id[:])) }
