package tui

import (
	tea "charm.land/bubbletea/v2"

	"rnix/ipc"
)

// How much of a long list of steps is asked for.
const (
	stepMargin = 100  // entries above and below those in sight
	stepsKept  = 4000 // that are known; what is far away is forgotten then
)

// stepBook is the list of the steps of a process, of which those are known that somebody has looked at. It belongs to the goroutine of
// the program.
type stepBook struct {
	tail        *fetch[ipc.StepsRequest, ipc.ListStepsResponse] // the last ones, and what comes
	near        *fetch[ipc.StepsRequest, ipc.ListStepsResponse] // those in sight
	first, last int                                             // numbers of the first and the last step; 0 = there is none
	known       map[int]*ipc.StepRecord                         // by number; nil = there is no such step
	damage      string
}

func newStepBook(e *env) *stepBook {
	return &stepBook{tail: newFetch(e, ipc.ListSteps), near: newFetch(e, ipc.ListSteps), known: map[int]*ipc.StepRecord{}}
}

// forget begins anew, with another process.
func (b *stepBook) forget() {
	b.tail.forget()
	b.near.forget()
	b.first, b.last, b.known, b.damage = 0, 0, map[int]*ipc.StepRecord{}, ""
}

// refresh asks for what is new at the end.
func (b *stepBook) refresh(target string) tea.Cmd {
	req := ipc.StepsRequest{Target: target, Last: true, Bare: true, Limit: 2 * stepMargin}
	if b.tail.known && b.last > 0 {
		req.After = max(b.last-1, 0) // it may have been run again
	}
	if b.near.err != nil {
		b.near.forget()
	}
	return b.tail.ask(req)
}

// update takes a message in. fresh says that there is an answer now, or an error.
func (b *stepBook) update(msg tea.Msg) (tea.Cmd, bool) {
	for _, f := range []*fetch[ipc.StepsRequest, ipc.ListStepsResponse]{b.tail, b.near} {
		cmd, fresh := f.update(msg)
		if fresh && f.err == nil {
			b.take(&f.sent, &f.got)
		}
		if cmd != nil || fresh {
			return cmd, fresh
		}
	}
	return nil, false
}

// take enters a page.
func (b *stepBook) take(req *ipc.StepsRequest, r *ipc.ListStepsResponse) {
	n := len(r.Steps)
	if n > 0 && r.First == 0 { // all at once
		r.First, r.Last = r.Steps[0].StepNumber, r.Steps[n-1].StepNumber
	}
	b.first, b.last, b.damage = r.First, r.Last, r.Damage
	from, to := max(req.After+1, r.First), r.Last
	switch {
	case req.Last && n > 0:
		from = r.Steps[0].StepNumber
	case !req.Last && req.Before > 0:
		to = min(to, req.Before-1)
	}
	if r.Next > 0 {
		to = min(to, r.Next)
	}
	for ; from <= to; from++ {
		b.known[from] = nil // what is not among them is not there
	}
	for i := range r.Steps {
		b.known[r.Steps[i].StepNumber] = &r.Steps[i]
	}
}

// len is how many entries the list has. Numbers that no step has are entries, too.
func (b *stepBook) len() int {
	if b.last == 0 {
		return 0
	}
	return b.last - b.first + 1
}

// number is the step of an entry.
func (b *stepBook) number(i int) int { return b.first + i }

// entry is where a step stands; false = there is none of that number.
func (b *stepBook) entry(n int) (int, bool) {
	return n - b.first, b.last > 0 && n >= b.first && n <= b.last
}

// at returns the step of an entry; nil = it is not known, or with known there is none of that number.
func (b *stepBook) at(i int) (rec *ipc.StepRecord, known bool) {
	rec, known = b.known[b.number(i)]
	return rec, known
}

// need asks for the entries from one to before another that are not known, with some before and behind; nil = all are known.
func (b *stepBook) need(target string, from, to int) tea.Cmd {
	if b.len() == 0 || b.near.busy || b.near.waits || b.near.err != nil {
		return nil
	}
	from, to = max(from, 0), min(to, b.len())
	for from < to && b.has(from) {
		from++
	}
	for to > from && b.has(to-1) {
		to--
	}
	if from >= to {
		return nil
	}
	if len(b.known) > stepsKept {
		for n := range b.known {
			if n < b.number(from-2*stepMargin) || n >= b.number(to+2*stepMargin) {
				delete(b.known, n)
			}
		}
	}
	from, to = max(from-stepMargin, 0), min(to+stepMargin, b.len())
	return b.near.about(ipc.StepsRequest{Target: target, After: b.number(from) - 1, Before: b.number(to), Limit: min(to-from, ipc.MaxPageSteps), Bare: true})
}

func (b *stepBook) has(i int) bool { _, known := b.known[b.number(i)]; return known }
