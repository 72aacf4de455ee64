package recovery

import (
	"encoding/json"

	rnixctx "rnix/context"
)

// EndsWithAnswer reports whether the model has spoken last, so that somebody else must before it can be
// asked again.
func (s *State) EndsWithAnswer() bool {
	n := len(s.Messages)
	return n > 0 && s.Messages[n-1].Role == rnixctx.RoleAssistant
}

// InputOf returns the input of a call of the last answer; nil if it has no such call.
func (s *State) InputOf(id string) json.RawMessage { return s.inputOf(id) }

// Disown makes the open calls of a fork its own, which its origin began. Processes that the origin was
// about to start are the origin's: such calls are in doubt. With files of its own, in which they have not
// happened, calls that can be taken back are run as if they had not been begun.
func (s *State) Disown(ownFiles bool) {
	if s.Origin == nil || s.Open == nil {
		return
	}
	s.Open = s.Clone().Open
	for i := range s.Open.Calls {
		c := &s.Open.Calls[i]
		if c.Intent == nil || c.Seq > s.Origin.Records+1 {
			continue
		}
		in := *c.Intent
		in.Child, in.Before = nil, nil
		c.Intent = &in
		if in.Effect == "reversible" && ownFiles && !c.Ended {
			c.Begun = false
		}
	}
}

// BegunCalls returns the calls of an answer whose step has no record yet that have run or may have, in order.
func (s *State) BegunCalls() []Call {
	var out []Call
	if s.Open != nil {
		for _, c := range s.Open.Calls {
			if c.Begun {
				out = append(out, c)
			}
		}
	}
	return out
}
