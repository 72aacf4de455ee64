package watch

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"rnix/internal/event"
	"rnix/internal/procview"
	"rnix/ipc"
	"rnix/types"
)

// hub is the one owner of what watchers see. It works only while somebody watches: it follows the event log, is told of the changes
// that have no event, reads the rows that have changed and no others, and makes each frame once for all who have asked for the same.
//
// touch is called under locks of the kernel and of the index: the lock of a shift is a leaf.
type hub struct {
	now atomic.Pointer[shift] // nil while nobody watches

	mu   sync.Mutex // held to begin and to end a shift
	subs int        // +checklocks:mu
}

// touch notes that something of a process may have changed. It costs next to nothing while nobody watches, and never blocks.
func (h *hub) touch(id types.UUID) {
	if s := h.now.Load(); s != nil {
		s.touch(id)
	}
}

// join adds a watcher, who must call leave.
func (h *hub) join(w *Service, req ipc.WatchRequest) (sub *subscriber, leave func()) {
	h.mu.Lock()
	defer h.mu.Unlock()
	s := h.now.Load()
	if s == nil {
		s = newShift(w)
		h.now.Store(s)
		go s.run() // ends when the last watcher leaves, who waits for it
	}
	h.subs++
	sub = s.add(req)
	return sub, func() {
		s.remove(sub)
		h.mu.Lock()
		defer h.mu.Unlock()
		if h.subs--; h.subs > 0 {
			return
		}
		h.now.Store(nil)
		s.end()
		<-s.over
	}
}

// How often a shift looks, at least and at most.
const (
	maxLag     = 250 * time.Millisecond          // between two looks while things happen, however rarely frames are wanted
	quietFrame = time.Second                     // between two frames that say only how far the log has come
	lookAround = MemoryAge + 50*time.Millisecond // at OS children and sessions: by then their memory is read anew
)

// MemoryAge is how old what is shown of the memory of OS children may be.
const MemoryAge = 2 * time.Second

// shift is the time during which somebody watches.
type shift struct {
	w    *Service
	ctx  context.Context
	end  context.CancelFunc
	over chan struct{} // closed when its goroutine has ended
	wake chan struct{} // one token: somebody has come, has gone, or wants everything again
	news chan struct{} // one token: something was touched

	mu sync.Mutex
	// +checklocks:mu
	dirty map[types.UUID]struct{} // to be read again
	// +checklocks:mu
	views map[ipc.WatchRequest]*view // what is in them is guarded likewise, unless it says otherwise

	// Of the goroutine of the shift alone.
	cur    *event.Cursor // nil when the log is closed
	events [256]event.Event
	looked time.Time // when it has looked last
	table  *table
	moved  []types.UUID         // rows that have changed, and the views do not know yet
	kids   map[types.PID]string // what there is of OS children, by owner
	told   []types.UUID         // who had a session with a platform
}

func newShift(w *Service) *shift {
	s := &shift{w: w, over: make(chan struct{}), wake: make(chan struct{}, 1), news: make(chan struct{}, 1),
		dirty: map[types.UUID]struct{}{}, views: map[ipc.WatchRequest]*view{}, cur: w.Log.Cursor(0), table: newTable(w), kids: map[types.PID]string{}}
	s.ctx, s.end = context.WithCancel(context.Background())
	s.table.changed = func(id types.UUID) { s.moved = append(s.moved, id) }
	return s
}

func (s *shift) touch(id types.UUID) {
	s.mu.Lock()
	_, known := s.dirty[id]
	s.dirty[id] = struct{}{}
	s.mu.Unlock()
	if !known {
		poke(s.news)
	}
}

// poke leaves a token where none is.
func poke(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// run is the goroutine of a shift. It looks when something happens, but not again at once, and sends what is due.
func (s *shift) run() {
	defer close(s.over)
	around := time.NewTicker(lookAround)
	defer around.Stop()
	alarm := time.NewTimer(time.Hour)
	defer alarm.Stop()
	s.load()
	for {
		views, gap, asked := s.round()
		now := time.Now()
		rested := !now.Before(s.looked.Add(gap))
		if asked || rested && s.anything() {
			s.look()
			now, rested = s.looked, false
		}
		next := s.send(views, now)
		more, news := (<-chan struct{})(nil), (<-chan struct{})(nil)
		if rested {
			news = s.news
			if s.cur != nil {
				more = s.cur.More()
			}
		} else if due := s.looked.Add(gap); next.IsZero() || due.Before(next) {
			next = due
		}
		var due <-chan time.Time
		if !next.IsZero() {
			alarm.Reset(max(time.Until(next), time.Millisecond))
			due = alarm.C
		}
		select {
		case <-s.ctx.Done():
			return
		case <-s.wake:
		case <-more:
		case <-news:
		case <-due:
		case <-around.C:
			s.lookAround()
		}
	}
}

// load reads everything.
func (s *shift) load() {
	s.table.seq, s.table.at = s.cur.Pos()-1, time.Now()
	s.table.load()
	s.looked = s.table.at
	s.lookAround()
}

// round returns the views, how long to wait between two looks, and whether somebody wants everything. It drops the
// views that nobody has any more.
func (s *shift) round() (views []*view, gap time.Duration, asked bool) {
	all := false
	gap = maxLag
	s.mu.Lock()
	for req, v := range s.views {
		if len(v.subs) == 0 {
			delete(s.views, req)
			continue
		}
		views = append(views, v)
		gap, all = min(gap, v.every), all || req.All
		for sub := range v.subs {
			asked = asked || sub.behind && sub.idle
		}
	}
	s.mu.Unlock()
	s.table.cover(all)
	s.tell(views)
	return views, gap, asked
}

// tell notes in each view which of its rows have changed.
func (s *shift) tell(views []*view) {
	for _, id := range s.moved {
		r := s.table.rows[id]
		for _, v := range views {
			if _, had := v.shown[id]; had || r != nil && v.begun && (!r.stored || v.req.All || r.state == procview.Suspended) {
				v.dirty[id] = struct{}{}
			}
		}
	}
	s.moved = s.moved[:0]
}

// anything reports whether something has happened since the last look.
func (s *shift) anything() bool {
	s.mu.Lock()
	n := len(s.dirty)
	s.mu.Unlock()
	return n > 0 || s.cur != nil && s.cur.Pos() <= s.w.Log.Last()
}

// look reads what has changed. What it reads is not older than the events up to its seq.
func (s *shift) look() {
	missed := s.follow()
	t := s.table
	s.mu.Lock()
	dirty := s.dirty
	s.dirty = make(map[types.UUID]struct{}, min(len(dirty), 64))
	t.release(s.views)
	s.mu.Unlock()
	t.at = time.Now()
	s.looked = t.at
	if s.cur != nil {
		t.seq = s.cur.Pos() - 1
	}
	if missed {
		t.reload()
		return
	}
	for id := range dirty {
		t.read(id)
	}
}

// follow notes which processes the events concern that have come. It reports whether it came too late for some.
func (s *shift) follow() (missed bool) {
	for last := s.w.Log.Last(); s.cur != nil && s.cur.Pos() <= last; {
		n, err := s.cur.TryRead(s.events[:])
		var m *event.Missed
		switch {
		case errors.As(err, &m):
			missed = true
		case errors.Is(err, io.EOF):
			s.cur = nil
		}
		s.mu.Lock()
		for i := range s.events[:n] {
			if e := &s.events[i]; reachesTable(e.Kind) {
				s.dirty[e.UUID] = struct{}{}
			}
		}
		s.mu.Unlock()
	}
	clear(s.events[:]) // they hold texts
	return missed
}

// lookAround looks at what nothing tells of: OS children, what they take of memory, and sessions with platforms.
func (s *shift) lookAround() {
	kids := s.w.Looks.Children()
	for pid := range s.kids {
		if _, there := kids[pid]; !there {
			s.touchPID(pid)
		}
	}
	for pid, text := range kids {
		if s.kids[pid] != text {
			s.touchPID(pid)
		}
	}
	s.kids = kids
	told := s.w.Looks.Sessions()
	for _, id := range slices.Concat(s.told, told) { // also those that have none any more
		s.touch(id)
	}
	s.told = told
}

func (s *shift) touchPID(pid types.PID) {
	if i, err := s.w.Kernel.Info(pid); err == nil {
		s.touch(i.UUID)
	}
}
