package supervise

import (
	"fmt"
	"slices"
	"time"
)

// Saved is what a policy knows, for going on after its program has ended. Part of the on-disk format.
type Saved struct {
	Next     ID          `json:"next"`
	Begun    bool        `json:"begun,omitempty"`
	Restarts []time.Time `json:"restarts,omitempty"` // at most one more than are allowed
	Children []SavedKid  `json:"children,omitempty"` // in order of their start
	Facts    []SavedFact `json:"facts,omitempty"`    // whose turn has not come
	Job      *SavedJob   `json:"job,omitempty"`
	Outcome  *Outcome    `json:"outcome,omitempty"`
}

// SavedKid is one child in Saved.
type SavedKid struct {
	ID       ID        `json:"id"`
	State    string    `json:"state"` // up, or the name of a State in which no run is there
	Due      time.Time `json:"due,omitzero"`
	Called   bool      `json:"called,omitempty"`
	Since    time.Time `json:"since,omitzero"`
	Tries    int       `json:"tries,omitempty"`
	Starts   int       `json:"starts,omitempty"`
	Restarts int       `json:"restarts,omitempty"`
}

// SavedFact is a fact in Saved.
type SavedFact struct {
	Kind   int  `json:"kind"`
	ID     ID   `json:"id"`
	Failed bool `json:"failed,omitempty"`
}

// SavedJob is what was being done.
type SavedJob struct {
	Kind  int       `json:"kind"`
	Stop  []ID      `json:"stop,omitempty"`
	Start []ID      `json:"start,omitempty"`
	Wait  *ID       `json:"wait,omitempty"`
	Due   time.Time `json:"due,omitzero"`
}

// up is the saved state of a child that may have a run.
const up = "up"

// Save returns what Restore needs of a policy. Children that were added and of which nobody was told yet are left out.
func Save(p *Policy) Saved {
	s := Saved{Next: p.next, Begun: p.begun, Restarts: slices.Clone(p.restarts)}
	fresh := map[ID]bool{}
	for _, f := range p.mail {
		if f.kind == add {
			fresh[f.id] = true
			continue
		}
		s.Facts = append(s.Facts, SavedFact{int(f.kind), f.id, f.failed})
	}
	for _, k := range p.kids {
		if fresh[k.id] {
			continue
		}
		kid := SavedKid{ID: k.id, State: k.state.String(), Due: k.due, Called: k.called, Since: k.since, Tries: k.tries, Starts: k.starts, Restarts: k.restarts}
		switch k.state {
		case Starting, Running, Stopping:
			kid.State, kid.Due = up, time.Time{}
		case Delayed:
		default:
			kid.Due = time.Time{}
		}
		s.Children = append(s.Children, kid)
	}
	if p.outcome.Cause != 0 {
		o := p.outcome
		s.Outcome = &o
	}
	if j := p.job; j != nil && (j.kind == closing || j.wait != nil || len(j.stop)+len(j.start) > 0) {
		s.Job = &SavedJob{Kind: int(j.kind), Stop: idsOf(j.stop), Start: idsOf(j.start), Due: j.due}
		if j.wait != nil {
			s.Job.Wait = &j.wait.id
		}
	} else if j != nil {
		s.Begun = s.Begun || j.kind == begin // as startNext would say next
	}
	return s
}

func idsOf(ks []*kid) []ID {
	var out []ID
	for _, k := range ks {
		out = append(out, k.id)
	}
	return out
}

// Restore returns a policy that goes on where the one that was saved has stopped. Its children that had a
// run are Starting: before anything else it must be told what has become of each, by Adopted and Exited,
// or by Unstarted. spec is the one of the policy that was saved; an error says that it is not.
func Restore(spec Spec, s Saved, now time.Time) (*Policy, error) {
	p := &Policy{spec: spec, next: s.Next, begun: s.Begun}
	for _, t := range s.Restarts {
		if t.After(now) { // the clock was set back
			t = now
		}
		p.restarts = append(p.restarts, t)
	}
	for _, c := range s.Children {
		k := &kid{id: c.ID, due: c.Due, called: c.Called, since: c.Since, tries: c.Tries, starts: c.Starts, restarts: c.Restarts, state: Starting}
		if k.since.After(now) {
			k.since = now
		}
		switch i := slices.Index(stateNames[:], c.State); {
		case c.State == up:
		case i < 0:
			return nil, fmt.Errorf("the state %q of a child is not known", c.State)
		default:
			k.state = State(i)
		}
		template := int(c.ID)
		if spec.Strategy == SimpleOneForOne {
			template = 0
		}
		if c.ID < 0 || c.ID >= s.Next || template >= len(spec.Children) || p.kids.find(c.ID) != nil {
			return nil, fmt.Errorf("there is no child %d", c.ID)
		}
		k.spec = &spec.Children[template]
		p.kids = append(p.kids, k)
	}
	for _, f := range s.Facts {
		p.mail = append(p.mail, fact{factKind(f.Kind), f.ID, f.Failed})
	}
	if s.Outcome != nil {
		p.outcome = *s.Outcome
	}
	if j := s.Job; j != nil {
		p.job = &job{kind: jobKind(j.Kind), stop: p.kids.those(j.Stop), start: p.kids.those(j.Start), due: j.Due}
		if j.Wait != nil {
			p.job.wait = p.kids.find(*j.Wait)
		}
	}
	return p, nil
}

// those returns the children that are still there.
func (ks kids) those(ids []ID) []*kid {
	var out []*kid
	for _, id := range ids {
		if k := ks.find(id); k != nil {
			out = append(out, k)
		}
	}
	return out
}

// Adopted says that a child of a restored policy has a run.
func (p *Policy) Adopted(id ID) {
	if k := p.kids.find(id); k != nil && k.state == Starting {
		k.state = Running
	}
}

// Unstarted says that a child of a restored policy was about to be started and was not: it is next. One that was
// being added is forgotten, since nobody was told of it.
func (p *Policy) Unstarted(id ID) {
	k := p.kids.find(id)
	if k == nil || k.state != Starting {
		return
	}
	k.state = Down
	if k.starts--; k.starts > 0 {
		k.restarts--
	}
	switch {
	case p.spec.Strategy == SimpleOneForOne && k.starts <= 0:
		p.kids.forget(k)
	case p.job == nil:
		p.job = &job{kind: again, start: []*kid{k}}
	case p.job.kind != closing:
		p.job.start = append([]*kid{k}, p.job.start...)
	}
}
