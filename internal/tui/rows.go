package tui

import (
	"time"

	"rnix/internal/price"
	"rnix/ipc"
	"rnix/types"
)

// row is a process as the daemon told it last.
type row struct {
	ipc.Proc
	at   time.Time // the daemon's clock then: what grows counts from it
	ver  uint64    // another one each time that it is told
	gone bool      // the daemon lists it no more
}

// rows folds the frames of watch_procs. It belongs to the goroutine of the program.
type rows struct {
	by     map[types.UUID]*row
	seq    uint64 // position in the event log that the rows are at
	ver    uint64 // grows with each frame that changed something
	totals ipc.Totals
	hidden int
	whole  bool // there was a first frame
	sum    listedSum
}

// listedSum is what all rows have used at a version of theirs.
type listedSum struct {
	ver, rows, tokens, unpriced int
	usd                         price.USD
}

// listed is the totals, with the tokens and dollars of all that is listed, also of what has ended.
func (r *rows) listed() ipc.Totals {
	if s := (listedSum{ver: int(r.ver), rows: len(r.by)}); r.sum.ver != s.ver || r.sum.rows != s.rows {
		for _, p := range r.by {
			own := p.Own()
			s.tokens, s.unpriced, s.usd = s.tokens+own.Tokens, s.unpriced+own.Unpriced, s.usd+price.FromFloat(own.CostUSD)
		}
		r.sum = s
	}
	t := r.totals
	t.Tokens, t.Unpriced, t.CostUSD = r.sum.tokens, r.sum.unpriced, r.sum.usd.Float()
	return t
}

// fold takes a frame in. keep is a process that stays when it is gone, until drop is called for it: the one that
// somebody looks at.
func (r *rows) fold(t *ipc.ProcTable, keep types.UUID) {
	r.ver++
	r.seq, r.totals, r.hidden = t.Seq, t.Totals, t.Hidden
	old := r.by
	if t.Whole || r.by == nil {
		r.by = make(map[types.UUID]*row, len(t.Procs))
		r.whole = true
	}
	for i := range t.Procs {
		p := t.Procs[i]
		r.by[p.UUID] = &row{Proc: p, at: t.At, ver: r.ver}
	}
	for _, id := range t.Gone {
		if p := r.by[id]; p != nil && id == keep {
			r.by[id] = &row{Proc: p.Proc, at: p.at, ver: r.ver, gone: true}
			continue
		}
		delete(r.by, id)
	}
	if p := old[keep]; t.Whole && p != nil && r.by[keep] == nil {
		r.by[keep] = &row{Proc: p.Proc, at: p.at, ver: r.ver, gone: true}
	}
}

// put takes one process in that the frames do not have: an ended one that somebody looks at.
func (r *rows) put(p *ipc.Proc, at time.Time) {
	if old := r.by[p.UUID]; old != nil && !old.gone {
		return
	}
	if r.by == nil {
		r.by = map[types.UUID]*row{}
	}
	r.ver++
	r.by[p.UUID] = &row{Proc: *p, at: at, ver: r.ver, gone: true}
}

// sweep takes those away that are gone, but for one.
func (r *rows) sweep(keep types.UUID) {
	for id, p := range r.by {
		if p.gone && id != keep {
			delete(r.by, id)
			r.ver++
		}
	}
}

// runs reports whether something grows with the clock: an elapsed time, the age of a call.
func (r *rows) runs() bool {
	for _, p := range r.by {
		if p.ticks() {
			return true
		}
	}
	return false
}

// ticks reports whether the process's time goes on.
func (p *row) ticks() bool {
	return !p.gone && p.PausedAt.IsZero() && (p.State == stateRunning || p.State == stateCreated)
}

// elapsed returns how long the process has worked. It stands still during a pause, while a person is asked, and after the end.
func (p *row) elapsed(now time.Time) time.Duration {
	d := time.Duration(p.ElapsedMs) * time.Millisecond
	if p.ticks() && !p.ClockPaused && now.After(p.at) {
		d += now.Sub(p.at)
	}
	return d
}

// States of a process. Part of the wire format.
const (
	stateCreated   = "created"
	stateRunning   = "running"
	stateSuspended = "suspended"
	stateZombie    = "zombie"
	stateDead      = "dead"
	stateArchived  = "archived"
)

// ended reports whether the process has come to an end.
func (p *row) ended() bool {
	return p.State == stateZombie || p.State == stateDead || p.State == stateArchived
}

// paused reports whether the process's gate is shut; it may go on at once.
func (p *row) paused() bool { return !p.PausedAt.IsZero() && !p.ended() }
