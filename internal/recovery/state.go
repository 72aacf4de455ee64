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
	"time"

	rnixctx "rnix/context"
	"rnix/internal/step"
	"rnix/types"
)

// Phase is what a history says of its last run.
type Phase string

// The phases. Part of the format of checkpoints.
const (
	Running   Phase = "running"   // no end is recorded: it runs, or the daemon was killed
	Stopped   Phase = "stopped"   // the daemon was stopped
	Broken    Phase = "broken"    // the daemon ended without warning; see Crashes
	Suspended Phase = "suspended" // it waits for something, see Wait
	Ended     Phase = "ended"     // it has an exit status
)

// State is what the first Seq records of a history amount to. The zero value is that of no record.
// Its slices are shared with the records and with earlier copies and must not be changed.
type State struct {
	Seq  uint64    `json:"seq"`
	Time time.Time `json:"time"` // of the last record

	Phase   Phase             `json:"phase,omitempty"`
	Paused  bool              `json:"paused,omitempty"` // a person paused it and has not resumed it
	Exit    *types.ExitStatus `json:"exit,omitempty"`
	Result  string            `json:"result,omitempty"`
	Wait    string            `json:"wait,omitempty"` // what a suspended one waits for
	Wake    time.Time         `json:"wake,omitzero"`
	Hint    string            `json:"hint,omitempty"`
	Crashes int               `json:"crashes,omitempty"` // how often the daemon broke off since a step has ended

	// Settled is the Detail of the latest spawn or resumed marker: what that run was started with.
	Settled json.RawMessage `json:"settled,omitempty"`
	// Name is what the process was renamed to since that run began, empty = to none; nil = it was not.
	Name   *string          `json:"name,omitempty"`
	PID    types.PID        `json:"pid,omitempty"`
	Runs   int              `json:"runs,omitempty"`
	Origin *step.ForkDetail `json:"origin,omitempty"`

	Messages []rnixctx.Message `json:"-"` // the conversation as it stands, after compactions
	Step     int               `json:"step"`
	Tokens   int               `json:"tokens_used"`
	Estimate bool              `json:"estimated,omitempty"`
	CostUSD  float64           `json:"cost_usd,omitempty"`
	// Unpriced are the tokens of which nobody knows what they cost. Spending is what the history has used
	// itself, a fork without its origin.
	Unpriced int               `json:"unpriced_tokens,omitempty"`
	Spending []step.Spending   `json:"spending,omitempty"`
	Limit    *step.LimitDetail `json:"limit,omitempty"`    // by how much the budget was raised since the run began; nil = it was not
	Purse    *step.PurseWait   `json:"purse,omitempty"`    // of a suspended one: the budget that it waits for
	Provider string            `json:"provider,omitempty"` // of the last answer
	Model    string            `json:"model,omitempty"`

	Plan string `json:"plan,omitempty"`
	// Skills are those that the model has activated since the run began; what was before stands in Settled.
	Skills         []step.SkillDetail `json:"skills,omitempty"`
	Spawned        int                `json:"spawned,omitempty"` // children that the model started
	FailedChildren []string           `json:"failed_children,omitempty"`
	Files          *step.Snapshot     `json:"files,omitempty"` // the latest snapshot of the workspace

	// Inputs is what persons have said that is not in the conversation yet.
	Inputs []string `json:"inputs,omitempty"`

	Mailbox

	// Notes is what a process without a model has kept, the latest of each key
	Notes map[string]json.RawMessage `json:"notes,omitempty"`

	Open *Open `json:"open,omitempty"` // the answer whose step has not ended
	// Ending is how the run is to end by what its model has answered, as long as no end is recorded and nothing was
	// said since; nil = it goes on.
	Ending *step.Ending `json:"ending,omitempty"`

	Active time.Duration `json:"active_ns"` // how long it has lived, without pauses and the time between runs
	began  time.Time     // since when Active is to be counted on; zero = it stands still
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
}

// Apply folds the next record in. Records come in order, each once; State does not keep r itself.
func (s *State) Apply(r *step.Record) {
	now := r.Time.Round(0) // as the file has it, without the reading of the process's own clock
	s.Seq = r.Seq
	s.pass(r, now)
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
		s.marker(r.Marker, r.Seq, now)
	}
	s.Time = now
}

// pass counts the time up to a record. Before one that a later daemon has written nothing ran: how long
// the process had lived when its daemon broke off is known up to the record before.
func (s *State) pass(r *step.Record, now time.Time) {
	if m := r.Marker; m != nil && (m.Name == step.MarkerInterrupted || m.Name == step.MarkerResumed) {
		s.began = time.Time{}
	}
	if !s.began.IsZero() && now.After(s.began) {
		s.Active += now.Sub(s.began)
		s.began = now
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
			s.count(&a)
		}
		s.Open = &Open{Answer: a}
		for _, c := range m.ToolCalls {
			s.Open.Calls = append(s.Open.Calls, Call{ID: c.ID, Name: c.Name})
		}
	case rnixctx.RoleUser:
		if len(s.Inputs) > 0 && s.Inputs[0] == m.Content && len(r.Delivered) == 0 {
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

func (s *State) count(a *step.Answer) {
	spent(s, a, step.AddSpending)
	if a.Provider != "" {
		s.Provider = a.Provider
	}
	if a.Model != "" {
		s.Model = a.Model
	}
}

// spent adds what an answer took, or may have taken.
func spent(s *State, a *step.Answer, add func([]step.Spending, *step.Answer) []step.Spending) {
	s.Tokens += a.TokensUsed
	s.Estimate = s.Estimate || a.Estimated
	s.CostUSD += a.CostUSD
	s.Unpriced += a.Unpriced()
	s.Spending = add(s.Spending, a)
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
	if s.Open == nil || s.Open.Answer.Step != r.StepNumber || s.Open.Answer.TokensUsed == 0 && s.Open.Answer.Started.IsZero() { // no answer has said what it cost
		s.count(r.Answer())
	} else if r.TokensUsed > s.Open.Answer.TokensUsed {
		s.count(r.Answer().Beyond(&s.Open.Answer))
	}
	s.Step = max(s.Step, r.StepNumber)
	s.Crashes = 0
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

func (s *State) marker(m *step.Marker, seq uint64, now time.Time) {
	if m.PID != 0 {
		s.PID = m.PID
	}
	switch m.Name {
	case step.MarkerSpawn, step.MarkerResumed:
		if s.Settled, s.Runs = m.Detail, s.Runs+1; s.Origin != nil && seq == s.Origin.Records+2 {
			s.Active, s.Runs, s.Spending = 0, 1, nil // the fork's own life begins
			s.Born()
		}
		s.Phase, s.Paused, s.Exit, s.Result, s.Wait, s.Hint, s.Wake = Running, false, nil, "", "", "", time.Time{}
		s.Limit, s.Purse, s.Name, s.Skills = nil, nil, nil, nil
		if s.began = now; m.Text == step.ByPerson { // who knows what has happened, and says to go on
			s.Crashes = 0
		}
	case step.MarkerFork:
		var f step.ForkDetail
		if seq == 1 && json.Unmarshal(m.Detail, &f) == nil { // others are those of its origin
			s.Origin = &f
		}
	case step.MarkerPause:
		s.Paused = true
		s.began = time.Time{}
	case step.MarkerResume:
		if s.Paused {
			s.Paused, s.began = false, now
		}
	case step.MarkerInput:
		s.Inputs = append(slices.Clip(s.Inputs), m.Text)
	case step.MarkerMail:
		if failed := s.put(m); failed != "" {
			s.FailedChildren = append(slices.Clip(s.FailedChildren), failed)
		}
	case step.MarkerNote:
		s.Notes = noted(s.Notes, m)
	case step.MarkerCompaction:
		if ms, ok := step.Compacted(m); ok {
			s.Messages = ms
		}
	case step.MarkerExit:
		s.end(Ended)
		s.Exit, s.Result, s.Paused = m.Exit, m.Text, false
	case step.MarkerSuspended:
		var d step.SuspendDetail
		_ = json.Unmarshal(m.Detail, &d) // it says less then
		s.end(Suspended)
		s.Wait, s.Wake, s.Hint, s.Exit, s.Purse = m.Text, d.Wake, d.Hint, m.Exit, d.Purse
	case step.MarkerSkill:
		if skill, ok := step.Activated(m); ok {
			s.Skills = append(slices.Clip(s.Skills), skill)
		}
	case step.MarkerName:
		name := m.Text
		s.Name = &name
	case step.MarkerLimit:
		var d step.LimitDetail
		if json.Unmarshal(m.Detail, &d) == nil {
			if s.Limit != nil {
				d.Tokens, d.USD = d.Tokens+s.Limit.Tokens, d.USD+s.Limit.USD
			}
			s.Limit = &d
		}
	case step.MarkerCutOff:
		if a, ok := step.CutOff(m); ok {
			spent(s, a, step.AddCutOff)
		}
	case step.MarkerDaemonStop:
		s.end(Stopped)
	case step.MarkerInterrupted:
		if s.Phase == Running {
			s.end(Broken)
			s.Crashes++
		}
	}
}

func (s *State) end(p Phase) {
	if s.Phase, s.began = p, (time.Time{}); p == Ended || p == Suspended {
		s.Ending = nil
	}
}

// WaitsForBudget is true of a state that is suspended because the budget of a history is used up. A pause by a person comes before that.
func WaitsForBudget(purse types.UUID) func(*State) bool {
	return func(s *State) bool {
		return s.Phase == Suspended && !s.Paused && s.Purse != nil && s.Purse.UUID == purse
	}
}

// Unfinished reports whether the history is a fork that was never finished.
func (s *State) Unfinished() bool { return s.Origin != nil && s.Seq < s.Origin.Records+1 }

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
