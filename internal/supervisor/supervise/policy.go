package supervise

import (
	"slices"
	"time"
)

// Policy decides for one supervisor. Make one with New, tell it the facts, and do what Next returns,
// one action after the other. Times must not go back. Not safe for concurrent use.
//
// As in OTP, one thing is done at a time: what happens meanwhile is dealt with after it, in order, and
// the end of a child that is about to be stopped anyway is not dealt with at all.
type Policy struct {
	spec     Spec
	kids     kids
	next     ID
	mail     []fact
	job      *job
	restarts restarts
	held     bool
	news     []Action // Decide, to be told of
	outcome  Outcome
	begun    bool
	over     bool
}

// fact is something that waits for its turn.
type fact struct {
	kind   factKind
	id     ID
	failed bool
}

type factKind int

const (
	exited factKind = iota // a child ended
	retry                  // a child could not be started again
	due                    // the delay of a child is over
	add                    // a child was added
)

// New returns a policy that starts the children of spec, which must be valid. Next returns the actions.
func New(spec Spec) *Policy {
	p := &Policy{spec: spec}
	if spec.Strategy != SimpleOneForOne {
		for i := range spec.Children {
			p.admit(&spec.Children[i])
		}
	}
	p.job = &job{kind: begin, start: slices.Clone(p.kids)}
	return p
}

func (p *Policy) admit(c *Child) *kid {
	k := &kid{id: p.next, spec: c}
	p.next++
	p.kids = append(p.kids, k)
	return k
}

// Add adds a child of the template and returns its name. If it cannot be started it is forgotten.
// Preconditions: the strategy is SimpleOneForOne.
func (p *Policy) Add() ID {
	k := p.admit(&p.spec.Children[0])
	p.mail = append(p.mail, fact{kind: add, id: k.id})
	return k.id
}

// Started says that a Start succeeded.
func (p *Policy) Started(id ID, now time.Time) {
	if k := p.kids.find(id); k != nil && k.state == Starting {
		k.state, k.since = Running, now
	}
}

// Failed says that a Start did not succeed.
func (p *Policy) Failed(id ID) {
	k := p.kids.find(id)
	if k == nil || k.state != Starting {
		return
	}
	k.state = Down
	switch p.job.kind {
	case begin:
		p.close(NotBegun, id)
	case adding:
		p.kids.forget(k)
		p.job = nil
	case again:
		k.state = Retrying
		p.mail = append(p.mail, fact{kind: retry, id: id})
		p.job = nil
	case closing:
	}
}

// Exited says that a child has ended, and whether that is a failure.
func (p *Policy) Exited(id ID, failed bool) {
	k := p.kids.find(id)
	if k == nil {
		return
	}
	switch k.state {
	case Stopping:
		k.state = Down
	case Running:
		k.state = Ended
		p.mail = append(p.mail, fact{kind: exited, id: id, failed: failed})
	}
}

// Hold holds every start and every decision to restart, until it is called with false. What is about
// to be stopped is stopped nevertheless.
func (p *Policy) Hold(held bool) { p.held = held }

// Stop has all children stopped in reverse order, and then the supervisor ended. It does nothing if
// that is under way.
func (p *Policy) Stop() { p.close(Asked, 0) }

// Begun reports whether all children were started in the beginning, whatever became of them.
func (p *Policy) Begun() bool { return p.begun }

// Outcome returns how the supervisor ends, as soon as that is decided.
func (p *Policy) Outcome() Outcome { return p.outcome }

// Children returns what is known of the children, in order of their start.
func (p *Policy) Children() []Status {
	out := make([]Status, len(p.kids))
	for i, k := range p.kids {
		out[i] = Status{ID: k.id, State: k.state, Restarts: k.restarts}
		if k.state == Delayed {
			out[i].Due = k.due
		}
	}
	return out
}

// Next returns what is to be done now.
func (p *Policy) Next(now time.Time) Action {
	for !p.over {
		if len(p.news) > 0 {
			a := p.news[0]
			p.news = p.news[1:]
			return a
		}
		if p.job == nil {
			if !p.open(now) {
				return Action{Until: p.kids.firstDue(p.held)}
			}
			continue
		}
		if a, ok := p.work(now); ok {
			return a
		}
	}
	return Action{Do: End}
}

// open takes the next fact and makes a job of it. It reports false if there is nothing to do.
func (p *Policy) open(now time.Time) bool {
	if p.held {
		return false
	}
	for _, k := range p.kids.overdue(now) {
		k.called = true
		p.mail = append(p.mail, fact{kind: due, id: k.id})
	}
	if len(p.mail) == 0 {
		return false
	}
	f := p.mail[0]
	p.mail = p.mail[1:]
	k := p.kids.find(f.id)
	switch {
	case k == nil:
	case f.kind == add:
		p.job = &job{kind: adding, start: []*kid{k}}
	case f.kind == due && k.state == Delayed && k.called:
		p.job = &job{kind: again, start: p.kids.affected(k, p.spec.Strategy)}
	case f.kind == retry && k.state == Retrying:
		p.restart(k, now)
	case f.kind == exited && k.state == Ended:
		p.down(k, f.failed, now)
	}
	return true
}

// down decides about a child that has ended by itself.
func (p *Policy) down(k *kid, failed bool, now time.Time) {
	k.state = Down
	switch {
	case k.spec.Restart == Permanent, k.spec.Restart == Transient && failed:
		p.restart(k, now)
	case k.spec.Restart == Temporary, p.spec.Strategy == SimpleOneForOne:
		p.kids.forget(k)
	}
}

// restart counts a restart and begins it, or gives up. One that is as long delayed as the period counts for
// nothing: it is no loop, and may be a plan.
func (p *Policy) restart(k *kid, now time.Time) {
	if !k.since.IsZero() && now.Sub(k.since) > p.spec.Period {
		k.tries = 0
	}
	k.tries++
	k.since = time.Time{}
	delay, count := k.spec.Backoff.After(k.tries), 0
	if delay < p.spec.Period || delay == 0 {
		if !p.restarts.allow(now, p.spec) {
			p.close(GaveUp, k.id)
			return
		}
		count = len(p.restarts)
	}
	j := &job{kind: again, start: p.kids.affected(k, p.spec.Strategy)}
	for _, o := range slices.Backward(j.start) {
		if o != k {
			j.stop = append(j.stop, o)
		}
	}
	k.state = Down
	if delay > 0 {
		j.wait, j.due = k, now.Add(delay)
	}
	p.job = j
	p.news = append(p.news, Action{Do: Decide, Child: k.id, Until: j.due, Count: count})
}

// close begins the end.
func (p *Policy) close(why Cause, id ID) {
	if p.outcome.Cause != 0 {
		return
	}
	p.outcome = Outcome{Cause: why, Child: id}
	p.job = &job{kind: closing, stop: slices.Clone(p.kids)}
	slices.Reverse(p.job.stop)
}
