// Package recovery turns a history into the state from which a process goes on: conversation, counters,
// plan, the calls whose outcome nobody knows, and what was settled when it was started. It is pure: it
// reads records and decides; it opens no file, starts nothing and knows no kernel.
//
// State.Apply is the whole of it. The same function runs over the records of a file when a process is
// resumed and over those that are just being written when a checkpoint is made, so that a checkpoint
// can only be a shortcut.
package recovery

import (
	"encoding/json"
	"maps"
	"slices"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// Phase is what a history says of its last run.
type Phase = step.Phase

// The phases.
const (
	Running   = step.PhaseRunning
	Stopped   = step.PhaseStopped
	Broken    = step.PhaseBroken
	Suspended = step.PhaseSuspended
	Ended     = step.PhaseEnded
)

// State is what the first Seq records of a history amount to. The zero value is that of no record.
// Its slices are shared with the records and with earlier copies and must not be changed.
type State struct {
	// Life is what markers say, as lists show it too. A new marker is folded there; here only what it does to the conversation, the calls and the
	// messages.
	step.Life

	Messages []rnixctx.Message `json:"-"` // the conversation as it stands, after compactions

	Plan           string         `json:"plan,omitempty"`
	Spawned        int            `json:"spawned,omitempty"` // children that the model started
	FailedChildren []string       `json:"failed_children,omitempty"`
	Files          *step.Snapshot `json:"files,omitempty"` // the latest snapshot of the workspace

	// Counted is what a vendor has counted of the beginning of the conversation; nil = nothing.
	Counted *Counted `json:"counted,omitempty"`

	// Inputs is what persons have said that is not in the conversation yet.
	Inputs []step.Said `json:"inputs,omitempty"`

	Mailbox

	// Notes is what a process without a model has kept, the latest of each key
	Notes map[string]json.RawMessage `json:"notes,omitempty"`

	Open *Open `json:"open,omitempty"` // the answer whose step has not ended
	// Ending is how the run is to end by what its model has answered, as long as no end is recorded and nothing was
	// said since; nil = it goes on.
	Ending *step.Ending `json:"ending,omitempty"`
}

// Counted is a vendor's count of a prompt: its system prompt and tools, which no record has, and the first messages.
type Counted struct {
	Messages int    `json:"messages"`
	Tokens   int    `json:"tokens"`
	Provider string `json:"provider,omitempty"`
	Model    string `json:"model,omitempty"` // as its vendor names it
}

// countOf returns what an answer says of the prompt before it; nil if that is no vendor's count of all these messages.
func countOf(a *step.Answer, messages int) *Counted {
	sent := a.Input + a.CacheRead + a.CacheWrite
	if a.Estimated || a.Metered || a.Prompt != messages || sent <= 0 {
		return nil
	}
	return &Counted{messages, sent, a.Provider, a.Model}
}

// Open is an answer whose step has no record yet.
type Open struct {
	Answer step.Answer `json:"answer"`
	Calls  []Call      `json:"calls"` // of the answer, in order
}

// Call is one call of an open step.
type Call struct {
	ID   string `json:"id"`
	Name string `json:"name"`
	// Begun says that an intent is recorded: it may have run. Ended says that a result is, too.
	Begun    bool          `json:"begun,omitempty"`
	Ended    bool          `json:"ended,omitempty"`
	Answered bool          `json:"answered,omitempty"` // its message is in the conversation
	Intent   *step.Intent  `json:"intent,omitempty"`   // without its input, which the answer has
	Seq      uint64        `json:"seq,omitempty"`      // of the intent
	Error    string        `json:"error,omitempty"`
	Code     types.ErrCode `json:"code,omitempty"`
	// Ask says that a person was asked about it, and Reply what was answered; nil = nothing yet.
	Ask   *step.Ask      `json:"ask,omitempty"`
	Reply *step.Answered `json:"reply,omitempty"`
}

// Apply folds the next record in. Records come in order, each once; State does not keep r itself.
func (s *State) Apply(r *step.Record) {
	s.Life.Apply(r)
	s.remove(step.DeliveredBy(r))
	switch r.Kind {
	case step.KindMessage:
		s.message(r)
	case step.KindIntent:
		if b := r.Intent.Before; b != nil && s.Files == nil {
			s.Files = b
		}
		if c := s.call(r.Intent.CallID); c != nil {
			in := *r.Intent
			in.Input = nil
			c.Begun, c.Ended, c.Intent, c.Seq, c.Error, c.Code = true, false, &in, r.Seq, "", ""
		}
	case step.KindResult:
		s.result(r.Result)
	case step.KindStep:
		s.step(r.Step)
	case step.KindMarker:
		s.marker(r.Marker, r.Seq)
	}
}

func (s *State) message(r *step.Record) {
	m := *r.Message
	s.Messages, s.Ending = append(s.Messages, m), nil
	switch m.Role {
	case rnixctx.RoleAssistant:
		a := step.Answer{Step: s.Step + 1}
		if r.Answer != nil {
			a = *r.Answer
			if c := countOf(&a, len(s.Messages)-1); c != nil {
				s.Counted = c
			}
		}
		s.Open = &Open{Answer: a}
		for _, c := range m.ToolCalls {
			s.Open.Calls = append(s.Open.Calls, Call{ID: c.ID, Name: c.Name})
		}
	case rnixctx.RoleUser:
		if len(s.Inputs) > 0 && s.Inputs[0].Text == m.Content && len(r.Delivered) == 0 {
			s.Inputs = s.Inputs[1:]
		}
	case rnixctx.RoleTool:
		if c := s.call(m.ToolCallID); c != nil {
			c.Answered = true
		}
	}
}

// call returns a call of the open step that has no answer yet.
func (s *State) call(id string) *Call {
	if s.Open == nil {
		return nil
	}
	for i := range s.Open.Calls {
		if c := &s.Open.Calls[i]; c.ID == id && !c.Answered {
			return c
		}
	}
	return nil
}

func (s *State) result(r *step.Result) {
	c := s.call(r.CallID)
	if c == nil {
		return
	}
	c.Ended, c.Error, c.Code = true, r.Error, r.Code
	if c.Intent != nil && c.Intent.Child != nil {
		s.Spawned++
		if c.Intent.Background && r.Error == "" || outlived(r.Code) {
			s.started(*c.Intent.Child)
		}
		if r.Error != "" {
			s.FailedChildren = append(slices.Clip(s.FailedChildren), FailedChild(r.Error))
		}
	}
}

func (s *State) step(r *step.StepRecord) {
	for i := range r.ToolCalls {
		if c := &r.ToolCalls[i]; c.Error == "" && c.Code == "" {
			if plan, ok := PlanOf(c.Name, s.inputOf(c.ID)); ok {
				s.Plan = plan
			}
		}
	}
	if r.Files != nil {
		s.Files = r.Files
	}
	s.Open, s.Ending = nil, r.End
}

// inputOf returns the input of a call of the last answer.
func (s *State) inputOf(id string) json.RawMessage {
	for _, m := range slices.Backward(s.Messages) {
		if m.Role == rnixctx.RoleAssistant {
			for _, c := range m.ToolCalls {
				if c.ID == id {
					return c.Input
				}
			}
			return nil
		}
	}
	return nil
}

func (s *State) marker(m *step.Marker, seq uint64) {
	switch m.Name {
	case step.MarkerSpawn, step.MarkerResumed:
		if s.Own(seq) {
			s.Born()
		}
	case step.MarkerAsk, step.MarkerAnswer:
		if !s.Inherited(seq) {
			s.asks(m)
		}
	case step.MarkerInput:
		s.Inputs = append(slices.Clip(s.Inputs), step.SaidBy(m))
	case step.MarkerMail:
		if failed := s.put(m); failed != "" {
			s.FailedChildren = append(slices.Clip(s.FailedChildren), failed)
		}
	case step.MarkerNote:
		s.Notes = noted(s.Notes, m)
	case step.MarkerCompaction:
		if ms, ok := step.Compacted(m); ok {
			s.Messages, s.Counted = ms, nil
		}
	case step.MarkerExit, step.MarkerSuspended:
		s.Ending = nil
	}
}

// asks folds what a person was asked about a call, and has answered.
func (s *State) asks(m *step.Marker) {
	if a, ok := step.Asked(m); ok && !a.Own {
		if c := s.call(a.CallID); c != nil {
			c.Ask, c.Reply = &a, nil
		}
	}
	if a, ok := step.AnsweredBy(m); ok {
		if c := s.call(a.CallID); c != nil && c.Ask != nil && c.Ask.Number == a.Number {
			c.Reply = &a
		}
	}
}

// WaitsForBudget is true of a state that is suspended because the budget of a history is used up. A pause by a person comes before that.
func WaitsForBudget(purse types.UUID) func(*State) bool {
	return func(s *State) bool {
		return s.Phase == Suspended && !s.Paused && s.Purse != nil && s.Purse.UUID == purse
	}
}

// Begun reports whether the process has ever been started: a fork that was cut off before that has the records of its original only.
func Begun(s *State) bool { return s.Origin == nil || s.Seq > s.Origin.Records+1 }

// Clone returns a copy that later calls of Apply on s do not change.
func (s *State) Clone() *State {
	c := *s
	c.Messages, c.Notes = slices.Clip(c.Messages), maps.Clone(c.Notes)
	if s.Open != nil {
		o := *s.Open
		o.Calls = slices.Clone(o.Calls)
		c.Open = &o
	}
	return &c
}

// Conversation returns the messages in an order that every provider takes: each call of an open step
// that has no answer is answered by saying that its outcome is not known.
func (s *State) Conversation() []rnixctx.Message {
	ms := slices.Clip(s.Messages)
	if s.Open == nil {
		return ms
	}
	for i := range s.Open.Calls {
		if c := &s.Open.Calls[i]; !c.Answered {
			ms = append(ms, rnixctx.Message{Role: rnixctx.RoleTool, ToolCallID: c.ID, IsError: true, Content: unknown(c)})
		}
	}
	return ms
}

// Unknown returns the open calls that were begun and have no result, in order.
func (s *State) Unknown() []Call {
	var out []Call
	if s.Open != nil {
		for _, c := range s.Open.Calls {
			if c.Begun && !c.Ended && !c.Answered {
				out = append(out, c)
			}
		}
	}
	return out
}
