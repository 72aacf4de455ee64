package watch

import (
	"bytes"
	"encoding/json"
	"slices"
	"time"

	"rnix/internal/procview"
	"rnix/ipc"
	"rnix/types"
)

// view is what all see who have asked for the same. Its subscribers are guarded by the lock of the shift, all else is of the
// goroutine of the shift.
type view struct {
	req   ipc.WatchRequest
	every time.Duration
	subs  map[*subscriber]struct{}

	begun bool                    // it has been shown to somebody
	last  time.Time               // of its last frame
	seq   uint64                  // of that
	dirty map[types.UUID]struct{} // rows that have changed since
	shown map[types.UUID]struct{} // rows that somebody may have

	kept   map[types.UUID]struct{} // the stored rows that Limit leaves
	keptAt uint64                  // table.store for which that holds
	hidden int

	whole *frame // everything, as it was at wholeAt
	rev   uint64 // of the table then
}

// frame is an encoded ipc.ProcTable. It never changes, and is shared.
type frame struct {
	seq  uint64
	data []byte
}

// subscriber is one watcher. All its fields are guarded by the lock of the shift.
type subscriber struct {
	s     *shift
	v     *view
	ready chan struct{} // one token: look again

	queue   []*frame
	gap     *ipc.Missed // what it is told before the first frame of queue
	behind  bool        // the next that it gets is everything
	fresh   bool        // it has had nothing yet
	idle    bool        // it has taken all that there was
	seq     uint64      // of the last frame that it took
	wholeAt time.Time   // when it was given everything last
}

// maxQueue is how many frames wait for a watcher before it is passed over.
const maxQueue = 8

// add adds a watcher.
func (s *shift) add(req ipc.WatchRequest) *subscriber {
	s.mu.Lock()
	defer s.mu.Unlock()
	v := s.views[req]
	if v == nil {
		v = &view{req: req, every: time.Duration(req.EveryMs) * time.Millisecond, subs: map[*subscriber]struct{}{},
			dirty: map[types.UUID]struct{}{}, shown: map[types.UUID]struct{}{}}
		s.views[req] = v
	}
	sub := &subscriber{s: s, v: v, ready: make(chan struct{}, 1), behind: true, fresh: true}
	v.subs[sub] = struct{}{}
	return sub
}

func (s *shift) remove(sub *subscriber) {
	s.mu.Lock()
	delete(sub.v.subs, sub)
	s.mu.Unlock()
	poke(s.wake)
}

// take returns the next frame for a watcher, and before it what it was too late for. If there is none yet, ready tells of it.
func (sub *subscriber) take() (f *frame, missed *ipc.Missed, ok bool) {
	s := sub.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(sub.queue) == 0 {
		if sub.idle = true; sub.behind {
			poke(s.wake)
		}
		return nil, nil, false
	}
	f, sub.queue[0], sub.queue = sub.queue[0], nil, sub.queue[1:] // it may be large, and nothing keeps it here
	missed, sub.gap, sub.seq = sub.gap, nil, f.seq
	return f, missed, true
}

// send gives each view's watchers what is due, and returns when the next is; zero = nothing is to come.
func (s *shift) send(views []*view, now time.Time) (next time.Time) {
	s.tell(views)
	soon := func(t time.Time) {
		if next.IsZero() || t.Before(next) {
			next = t
		}
	}
	for _, v := range views {
		if !v.begun {
			continue
		}
		switch due, some := v.due(s.table); {
		case !some:
		case now.Before(due):
			soon(due)
		default:
			s.deliver(v, s.table.delta(v), now)
		}
	}
	for _, v := range views {
		s.catchUp(v, now, soon)
	}
	return next
}

// due returns when the next frame of a view is, if there is one.
func (v *view) due(t *table) (time.Time, bool) {
	switch {
	case len(v.dirty) > 0:
		return v.last.Add(v.every), true
	case t.seq > v.seq:
		return v.last.Add(max(v.every, quietFrame)), true
	}
	return time.Time{}, false
}

// deliver gives a frame to all who are not behind. It never waits: whoever has too many already is passed over.
func (s *shift) deliver(v *view, f *frame, now time.Time) {
	v.last, v.seq = now, f.seq
	s.mu.Lock()
	defer s.mu.Unlock()
	for sub := range v.subs {
		switch {
		case sub.behind:
		case len(sub.queue) >= maxQueue:
			sub.queue, sub.behind = nil, true
		default:
			sub.queue, sub.idle = append(sub.queue, f), false
			poke(sub.ready)
		}
	}
}

// catchUp gives everything to those who are behind and ready for it.
func (s *shift) catchUp(v *view, now time.Time, soon func(time.Time)) {
	var to []*subscriber
	s.mu.Lock()
	for sub := range v.subs {
		if !sub.behind || !sub.idle {
			continue
		}
		if due := sub.wholeAt.Add(v.every); !sub.fresh && now.Before(due) {
			soon(due)
			continue
		}
		to = append(to, sub)
	}
	s.mu.Unlock()
	if len(to) == 0 {
		return
	}
	f := s.table.wholeOf(v)
	if !v.begun {
		v.begun, v.last, v.seq = true, now, f.seq
		clear(v.dirty) // that is in it
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, sub := range to {
		if !sub.fresh {
			sub.gap = &ipc.Missed{From: sub.seq + 1, To: max(f.seq, sub.seq+1)}
		}
		sub.queue, sub.behind, sub.fresh, sub.idle, sub.wholeAt = append(sub.queue, f), false, false, false, now
		poke(sub.ready)
	}
}

// delta makes the frame of what has changed for a view.
func (t *table) delta(v *view) *frame {
	head := ipc.ProcTable{Seq: t.seq, At: t.at, Procs: []ipc.Proc{}, Totals: t.sum.totals()}
	t.keep(v)
	var rows []*row
	for id := range v.dirty {
		if r := t.rows[id]; r != nil && v.sees(r) {
			rows = append(rows, r)
			v.shown[id] = struct{}{}
		} else if _, had := v.shown[id]; had {
			head.Gone = append(head.Gone, id)
			delete(v.shown, id)
		}
	}
	clear(v.dirty)
	v.whole = nil
	slices.SortFunc(rows, byPID)
	slices.SortFunc(head.Gone, func(a, b types.UUID) int { return bytes.Compare(a[:], b[:]) })
	head.Hidden = v.hidden
	return t.encode(&head, rows)
}

// wholeOf makes the frame of everything for a view. The rows that have changed since its last frame are in it already, and come
// again with the next one.
func (t *table) wholeOf(v *view) *frame {
	t.keep(v)
	if v.whole != nil && v.rev == t.rev && v.whole.seq == t.seq {
		return v.whole
	}
	rows := make([]*row, 0, len(t.rows))
	for id, r := range t.rows {
		if !v.sees(r) {
			continue
		}
		rows = append(rows, r)
		v.shown[id] = struct{}{}
	}
	slices.SortFunc(rows, byPID)
	v.whole = t.encode(&ipc.ProcTable{Seq: t.seq, At: t.at, Whole: true, Procs: []ipc.Proc{}, Hidden: v.hidden, Totals: t.sum.totals()}, rows)
	v.rev = t.rev
	return v.whole
}

// noRows is how a frame without rows says so.
var noRows = []byte(`"procs":[]`)

// encode makes a frame of its head and its rows.
func (t *table) encode(head *ipc.ProcTable, rows []*row) *frame {
	text, err := json.Marshal(head)
	if err != nil { // it holds numbers and UUIDs
		panic(err)
	}
	i := bytes.Index(text, noRows) + len(noRows) - 1
	size := len(text)
	for _, r := range rows {
		size += len(r.head) + len(r.tail) + 16
	}
	b := append(make([]byte, 0, size), text[:i]...)
	for first, n := true, 0; n < len(rows); n++ {
		at := len(b)
		if !first {
			b = append(b, ',')
		}
		var ok bool
		if b, ok = t.appendRow(b, rows[n]); !ok {
			b = b[:at]
			continue
		}
		first = false
	}
	return &frame{seq: head.Seq, data: append(b, text[i:]...)}
}

// sees reports whether a row is in a view. keep was called.
func (v *view) sees(r *row) bool {
	switch {
	case !r.stored:
		return true
	case !v.req.All && r.state != procview.Suspended:
		return false
	case v.req.Limit == 0:
		return true
	}
	_, ok := v.kept[r.id]
	return ok
}

// keep brings up to date which stored rows the limit of a view leaves: the newest. Rows that come in by that, or go, are
// marked as changed.
func (t *table) keep(v *view) {
	if v.req.Limit == 0 || v.kept != nil && v.keptAt == t.store {
		return
	}
	var stored []*row
	for _, r := range t.rows {
		if r.stored && (v.req.All || r.state == procview.Suspended) {
			stored = append(stored, r)
		}
	}
	slices.SortFunc(stored, func(a, b *row) int { // as list_procs has them: archived ones count as older than all others
		if x, y := a.state == procview.Archived, b.state == procview.Archived; x != y {
			if x {
				return -1
			}
			return 1
		}
		return bytes.Compare(a.id[:], b.id[:])
	})
	v.hidden = max(len(stored)-v.req.Limit, 0)
	was := v.kept
	v.kept, v.keptAt = map[types.UUID]struct{}{}, t.store
	for _, r := range stored[v.hidden:] {
		v.kept[r.id] = struct{}{}
		if _, had := was[r.id]; !had {
			v.dirty[r.id] = struct{}{}
		}
	}
	for id := range was {
		if _, has := v.kept[id]; !has {
			v.dirty[id] = struct{}{}
		}
	}
}
