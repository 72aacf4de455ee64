package step

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"rnix/internal/permit"
	"rnix/types"
)

// The markers about what a person is asked.
const (
	MarkerAsk    = "ask"    // a call waits for the answer of a person; Detail: Ask
	MarkerAnswer = "answer" // a person has answered; Text: see Answered.Verdict; Detail: Answered
	MarkerGrant  = "grant"  // calls pass without asking from here on; Detail: permit.Grant
	MarkerDenied = "denied" // a rule has refused a call; Detail: types.Denial
	MarkerRevoke = "revoke" // a grant counts no more; Detail: its number
)

// Ask is a call about which a person is asked, before it is begun.
type Ask struct {
	Number uint64 `json:"number"` // by which people call it: of no other ask of the data directory
	CallID string `json:"call_id"`
	Tool   string `json:"tool"`
	Path   string `json:"path"` // of the device
	Text   string `json:"text"` // the call in a line, for lists; its input stands in the answer of the model
	Rule   string `json:"rule"` // because of which it is asked
	// Since is when it was asked first; zero in histories of an earlier version. Until is when the default of a question counts; zero = never.
	Since time.Time `json:"since,omitzero"`
	Until time.Time `json:"until,omitzero"`
	// Own says that the call is none of the process's loop, but one that an agent CLI makes with a tool of its own: it ends with the run.
	Own bool `json:"own,omitempty"`
}

// Answered is what a person has answered to an ask.
type Answered struct {
	Number  uint64          `json:"number"`
	CallID  string          `json:"call_id"`
	Allow   bool            `json:"allow"`
	Input   json.RawMessage `json:"input,omitempty"`   // what is run in place of the input that was asked about
	Because string          `json:"because,omitempty"` // what the model is told of a refusal
	// Text is the answer to a question. Default says that it is that of the agent itself, since no person has answered in time.
	Text    string `json:"text,omitempty"`
	Default bool   `json:"default,omitempty"`
	// Withdrawn says that no person has answered: who asked does not wait any more.
	Withdrawn bool `json:"withdrawn,omitempty"`
}

// What the text of an answer marker is besides allow and deny.
const (
	Edited    permit.Decision = "edit"      // allowed, with another input
	Told      permit.Decision = "answer"    // a question has its answer
	Defaulted permit.Decision = "default"   // no person has answered a question in time, and its default counts
	Withdrawn permit.Decision = "withdrawn" // no person has answered, and it is not waited for any more
)

// Verdict is what an answer says in a word: allow, edit, answer, default, deny or withdrawn.
func (a *Answered) Verdict() permit.Decision {
	switch {
	case a.Withdrawn:
		return Withdrawn
	case a.Default:
		return Defaulted
	case a.Text != "":
		return Told
	case a.Allow && len(a.Input) > 0:
		return Edited
	case a.Allow:
		return permit.Allow
	}
	return permit.Deny
}

// Question reports whether it is a question of the agent, and no call that would do something.
func (a *Ask) Question() bool { return a.Path == permit.AskPath }

// AskMarker returns the marker of an ask.
func AskMarker(pid types.PID, a *Ask) (Marker, error) {
	return detailed(MarkerAsk, pid, "", a)
}

// AnswerMarker returns the marker of an answer.
func AnswerMarker(pid types.PID, a *Answered) (Marker, error) {
	return detailed(MarkerAnswer, pid, string(a.Verdict()), a)
}

// GrantMarker returns the marker of a grant.
func GrantMarker(pid types.PID, g *permit.Grant) (Marker, error) {
	return detailed(MarkerGrant, pid, "", g)
}

// denied is the Detail of a denied marker. Own is as in Ask.
type denied struct {
	types.Denial
	Own bool `json:"own,omitempty"`
}

// DeniedMarker returns the marker of a call that a rule has refused. own is as in Ask.
func DeniedMarker(pid types.PID, d types.Denial, own bool) (Marker, error) {
	return detailed(MarkerDenied, pid, "", denied{d, own})
}

// Unmet returns the step from which on a call that does something makes up for one that was refused in a step. One beside it does not; but of what a
// process does outside of its loop, which is in the record of a later call, nothing else is known than that it came after it.
func Unmet(step int, own bool) int {
	if own {
		return step
	}
	return step + 1
}

// Did reports whether a call of the step has done something.
func (r *StepRecord) Did() bool {
	return slices.ContainsFunc(r.ToolCalls, func(c Call) bool {
		return c.Error == "" && c.Name != "complete" && c.Name != "plan" && c.Name != "replan"
	})
}

// Refusal is what is counted of an ask that a person has refused.
func (a *Ask) Refusal(because string) types.Denial {
	return types.Denial{Tool: a.Tool, Text: a.Text, Why: cmp.Or(because, "a person has refused it")}
}

// RevokeMarker returns the marker of the end of a grant.
func RevokeMarker(pid types.PID, number uint64) (Marker, error) {
	return detailed(MarkerRevoke, pid, "", number)
}

func detailed(name string, pid types.PID, text string, v any) (Marker, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return Marker{}, types.Errorf(types.ErrInternal, "Write", "", "encode: %w", err)
	}
	return Marker{Name: name, PID: pid, Text: text, Detail: b}, nil
}

// Asked reads an ask marker; false if m is none.
func Asked(m *Marker) (a Ask, ok bool) {
	return a, m.Name == MarkerAsk && json.Unmarshal(m.Detail, &a) == nil && a.Number > 0
}

// AnsweredBy reads an answer marker; false if m is none.
func AnsweredBy(m *Marker) (a Answered, ok bool) {
	return a, m.Name == MarkerAnswer && json.Unmarshal(m.Detail, &a) == nil && a.Number > 0
}

// asks folds a marker about asks and grants. What was asked of its origin a fork asks itself.
func (l *Life) asks(m *Marker, seq uint64) {
	if l.Inherited(seq) {
		return
	}
	switch m.Name {
	case MarkerAsk:
		if a, ok := Asked(m); ok {
			l.Asks = append(slices.Clip(l.Asks), a)
		}
	case MarkerAnswer:
		if a, ok := AnsweredBy(m); ok {
			for i := range l.Asks {
				if open := &l.Asks[i]; open.Number == a.Number && !a.Allow && !a.Withdrawn && !open.Question() {
					l.Refused, l.Unmet = l.Refused.Add(open.Refusal(a.Because)), Unmet(l.Step+1, open.Own)
				}
			}
			l.Asks = without(l.Asks, func(open *Ask) bool { return open.Number == a.Number })
		}
	case MarkerDenied:
		var d denied
		if json.Unmarshal(m.Detail, &d) == nil {
			l.Refused, l.Unmet = l.Refused.Add(d.Denial), Unmet(l.Step+1, d.Own)
		}
	case MarkerGrant:
		var g permit.Grant
		if json.Unmarshal(m.Detail, &g) == nil {
			l.Grants = append(slices.Clip(l.Grants), g)
		}
	case MarkerRevoke:
		var number uint64
		if json.Unmarshal(m.Detail, &number) == nil {
			l.Grants = without(l.Grants, func(g *permit.Grant) bool { return g.Number == number })
		}
	}
}

// own reports whether an ask is one that ends with the run.
func own(a *Ask) bool { return a.Own }

// without returns a list without what is to go; nil if nothing is left. It does not change the list.
func without[T any](list []T, gone func(*T) bool) (out []T) {
	for i := range list {
		if !gone(&list[i]) {
			out = append(out, list[i])
		}
	}
	return out
}

// Inherited reports whether the record with this number is one that a fork has of its origin.
func (l *Life) Inherited(seq uint64) bool { return l.Origin != nil && seq <= l.Origin.Records+1 }
