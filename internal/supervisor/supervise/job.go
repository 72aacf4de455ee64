package supervise

import (
	"slices"
	"time"
)

// job is what is done at the moment: it stops some children, then starts some.
type job struct {
	kind  jobKind
	stop  []*kid // in this order, the next one when the one before is down
	start []*kid
	// Of a restart with a delay: the child that waits, and until when. Nothing is started then.
	wait *kid
	due  time.Time
}

type jobKind int

const (
	begin jobKind = iota
	again
	adding
	closing
)

// work does the next thing of the job. It reports false when there was none to be told of.
func (p *Policy) work(now time.Time) (Action, bool) {
	if a, ok := p.stopNext(now); ok || len(p.job.stop) > 0 {
		return a, ok
	}
	switch j := p.job; {
	case j.kind == closing:
		p.over = true
		return Action{}, false
	case j.wait != nil:
		j.wait.state, j.wait.due, j.wait.called = Delayed, j.due, false
		p.job = nil
		return Action{}, false
	}
	return p.startNext()
}

// stopNext stops the next child. Children that were made of a template are stopped all at once: they
// have no order, and there can be many.
func (p *Policy) stopNext(now time.Time) (Action, bool) {
	j, wait := p.job, Action{}
	together := p.spec.Strategy == SimpleOneForOne
	for len(j.stop) > 0 {
		left := j.stop[:0:0]
		for i, k := range j.stop {
			if k.state == Ended { // it would have been stopped, so its end is not dealt with
				p.mail = slices.DeleteFunc(p.mail, func(f fact) bool { return f.kind == exited && f.id == k.id })
			}
			a, down := k.stop(now)
			switch {
			case down:
				if k.spec.Restart == Temporary {
					p.kids.forget(k)
					j.start = slices.DeleteFunc(j.start, func(o *kid) bool { return o == k })
				}
				continue
			case a.Do != Wait:
				j.stop = append(left, j.stop[i:]...)
				return a, true
			case !a.Until.IsZero() && (wait.Until.IsZero() || a.Until.Before(wait.Until)):
				wait = a
			}
			left = append(left, k)
			if !together {
				left = append(left, j.stop[i+1:]...)
				break
			}
		}
		if j.stop = left; len(left) > 0 {
			return wait, true
		}
	}
	return Action{}, false
}

// startNext starts the next child of the job, or ends the job.
func (p *Policy) startNext() (Action, bool) {
	j := p.job
	if slices.ContainsFunc(p.kids, func(k *kid) bool { return k.state == Starting }) {
		return Action{}, true
	}
	if len(j.start) == 0 {
		p.begun = p.begun || j.kind == begin
		p.job = nil
		return Action{}, false
	}
	if p.held {
		return Action{}, true
	}
	k := j.start[0]
	j.start = j.start[1:]
	k.state = Starting
	if k.starts++; k.starts > 1 {
		k.restarts++
	}
	return Action{Do: Start, Child: k.id}, true
}
