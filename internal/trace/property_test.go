package trace

import (
	"testing"
	"time"

	"pgregory.net/rapid"

	rnixctx "rnix/context"
	"rnix/internal/event"
	"rnix/internal/step"
	"rnix/types"
)

// life writes the histories of a random family. Its clock may be set at any time, and any record may be the last.
type life struct {
	t       *testing.T
	r       *rapid.T
	sources []Source
	next    byte
	off     time.Duration // by which the wall clock is wrong now
}

func (l *life) some(name string, most int) int { return rapid.IntRange(0, most).Draw(l.r, name) }

func (l *life) time() time.Duration {
	return time.Duration(rapid.IntRange(0, 4000).Draw(l.r, "ms")) * time.Millisecond
}

func (l *life) set(x *teller) {
	if l.some("set the clock", 12) == 0 {
		l.off += time.Duration(l.some("by", 7200)-3600) * time.Second
	}
	x.off = l.off
}

// process writes a process that begins at a time, and returns when it has ended.
func (l *life) process(at time.Time, parent byte, depth int) time.Time {
	l.next++
	id := l.next
	x := &teller{t: l.t, id: types.UUID{15: id}, now: at, off: l.off}
	x.mark(step.Marker{Name: step.MarkerSpawn, PID: types.PID(id), Text: "do it"})
	x.message(rnixctx.Message{Role: rnixctx.RoleUser, Content: "do it"}, nil)
	place := len(l.sources)
	l.sources = append(l.sources, Source{})
	end := at
	for range l.some("steps", 3) {
		l.step(x, depth)
		if l.some("what comes between", 5) == 0 {
			l.between(x)
		}
		end = later(end, x.now)
	}
	x.pass(l.time())
	switch l.some("end", 4) {
	case 0: // without any
	case 1:
		x.exit(1, "it went wrong")
	default:
		x.exit(0, "completed")
	}
	if n := l.some("cut off", 3*len(x.records)); n > 2 && n < len(x.records) {
		x.records = x.records[:n]
	}
	src := with(x, parent)
	src.Live = src.History.Markers[len(src.History.Markers)-1].Name != step.MarkerExit && l.some("live", 1) == 0
	if l.some("events are lost", 3) == 0 {
		src.Events = nil
	}
	l.sources[place] = src
	return later(end, x.now)
}

func (l *life) step(x *teller, depth int) {
	l.set(x)
	if x.begin(); l.some("limit", 4) == 0 {
		x.pass(l.time()).event(event.Waiting, "rate limit").pass(l.time()).event(event.Waiting, "")
	}
	calls := l.some("calls", 3)
	if l.some("many", 10) == 0 {
		calls = 12
	}
	names := make([]string, calls)
	for i := range names {
		names[i] = rapid.SampledFrom([]string{"shell", "spawn", "later", "wait", "recv", "complete"}).Draw(l.r, "call")
	}
	if l.some("no answer", 9) == 0 {
		x.pass(l.time()).fails("the model is away")
		return
	}
	x.ask(l.time(), names...)
	if side := l.some("side by side", 1) == 0; side && calls > 0 {
		began, last := x.now, x.now
		for i, n := range names {
			x.start(i, n, 0, false)
		}
		took := make([]time.Duration, calls)
		for i := range names {
			took[i] = l.time()
			last = later(last, began.Add(took[i]))
		}
		x.now = last
		for i, n := range names {
			x.result(i, n, took[i], map[bool]string{true: "it failed"}[l.some("failed", 4) == 0])
		}
	} else {
		for i, n := range names {
			l.call(x, i, n, depth)
		}
	}
	l.set(x)
	x.done()
}

func (l *life) call(x *teller, i int, name string, depth int) {
	began := x.now
	switch {
	case name == "spawn" && depth > 0:
		x.start(i, "spawn", l.next+1, false)
		x.now = l.process(x.now.Add(l.time()/8), x.id[15], depth-1)
	case name == "later" && depth > 0:
		x.start(i, "spawn", l.next+1, true)
		l.process(x.now, x.id[15], depth-1)
		x.pass(time.Millisecond)
	case name == "complete":
		return // no record says when it began
	default:
		x.start(i, name, 0, false)
		if l.some("pause in it", 6) == 0 {
			x.pass(l.time()).mark(step.Marker{Name: step.MarkerPause}).pass(l.time()).mark(step.Marker{Name: step.MarkerResume})
		}
		x.pass(l.time())
	}
	x.result(i, name, x.now.Sub(began), map[bool]string{true: "it failed"}[l.some("failed", 4) == 0])
}

// between lets something happen that does not belong to a step.
func (l *life) between(x *teller) {
	x.pass(l.time())
	switch l.some("what", 4) {
	case 0:
		x.mark(step.Marker{Name: step.MarkerPause}).pass(l.time()).mark(step.Marker{Name: step.MarkerResume})
		return
	case 1:
		x.mark(step.Marker{Name: step.MarkerSuspended, Text: "budget", Exit: &types.ExitStatus{Code: 2, Reason: "budget_exceeded"}})
	case 2:
		x.mark(step.Marker{Name: step.MarkerDaemonStop})
	case 3:
		x.mark(step.Marker{Name: step.MarkerInterrupted})
	}
	x.pass(100 * l.time())
	l.set(x)
	x.mark(step.Marker{Name: step.MarkerResumed, PID: types.PID(100 + l.next)})
}

func TestThePartsOfTheCriticalPathAddUpWhateverHappens(t *testing.T) {
	rapid.Check(t, func(r *rapid.T) {
		l := &life{t: t, r: r}
		end := l.process(noon, 0, 3)
		now := end.Add(l.off).Add(time.Duration(l.some("later", 10000)-5000) * time.Millisecond)
		tr := Of(l.sources, now)
		check(r, tr)
		if len(l.sources) != count(tr, Process) {
			r.Errorf("%d processes, and spans of %d", len(l.sources), count(tr, Process))
		}
		again := Of(l.sources, now)
		for i := range tr.Spans {
			if tr.Spans[i].ID != again.Spans[i].ID {
				r.Errorf("span %d has the id %s, and then %s", i, tr.Spans[i].ID, again.Spans[i].ID)
			}
		}
		limit := 1 + l.some("limit", 40)
		all := len(tr.Spans)
		cut := tr.Shorten(limit)
		if len(tr.Spans) > limit || cut != all-len(tr.Spans) || cut > 0 && limit < 3 && len(tr.Spans) == 0 {
			r.Errorf("%d of %d spans are left of at most %d, %d are gone", len(tr.Spans), all, limit, cut)
		}
		at := map[string]bool{"": true}
		for _, s := range tr.Spans {
			if !at[s.Parent] {
				r.Errorf("%+v is left without what it is in", s)
			}
			at[s.ID] = true
		}
		_ = chain(tr)
	})
}

func count(tr *Trace, k Kind) (n int) {
	for i := range tr.Spans {
		if tr.Spans[i].Kind == k {
			n++
		}
	}
	return n
}
