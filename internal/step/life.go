package step

import (
	"cmp"
	"encoding/json"
	"errors"
	"slices"
	"time"

	rnixctx "rnix/context"
	"rnix/internal/permit"
	"rnix/internal/price"
	"rnix/types"
)

// Phase is what the records of a history say of its last run. Part of the format of checkpoints.
type Phase string

// The phases.
const (
	PhaseRunning   Phase = "running"   // no end is recorded: it runs, or the daemon was killed
	PhaseStopped   Phase = "stopped"   // the daemon was stopped
	PhaseBroken    Phase = "broken"    // the daemon ended without warning; see Crashes
	PhaseSuspended Phase = "suspended" // it waits for something, see Wait
	PhaseEnded     Phase = "ended"     // it has an exit status
)

// lifeVersion is the version of the fold. It is raised when the same records amount to something else, or to more: what an earlier program has
// folded is not gone on with then.
const lifeVersion = 7

// Life is what the first Seq records of a history say of its process, apart from its conversation, its calls and its messages. It is the only
// place where markers are folded into that: lists show it (Put), and recovery goes on from it (recovery.State). The zero value is that of no
// record. Its slices are shared with earlier copies and must not be changed.
type Life struct {
	Version int       `json:"life"` // lifeVersion of the program that has folded it
	Seq     uint64    `json:"seq"`
	Created time.Time `json:"created_at,omitzero"` // of the first record
	Time    time.Time `json:"time"`                // of the last record

	Phase    Phase             `json:"phase,omitempty"`
	Paused   bool              `json:"paused,omitempty"` // a person paused it and has not resumed it
	PausedAt time.Time         `json:"paused_at,omitzero"`
	Exit     *types.ExitStatus `json:"exit,omitempty"`
	Ended    time.Time         `json:"ended_at,omitzero"` // when it got its exit status; zero = it goes on, or can
	Result   string            `json:"result,omitempty"`
	Wait     types.Suspension  `json:"waits,omitzero"` // what a suspended one waits for
	Wake     time.Time         `json:"wake,omitzero"`
	Hint     string            `json:"hint,omitempty"`
	Purse    *PurseWait        `json:"purse,omitempty"`   // of a suspended one: the budget that it waits for
	Compact  *string           `json:"compact,omitempty"` // a person wants a compaction, in which this is kept above all; nil = none is wanted
	Crashes  int               `json:"crashes,omitempty"` // how often the daemon broke off since a step has ended

	// Settled is the Detail of the latest spawn or resumed marker: what that run was started with.
	Settled json.RawMessage `json:"settled,omitempty"`
	Intent  string          `json:"intent,omitempty"` // of a spawn marker that has it only as its text
	// Name is what the process was renamed to since that run began, empty = to none; nil = it was not.
	Name  *string      `json:"name,omitempty"`
	Limit *LimitDetail `json:"limit,omitempty"` // by how much the budget was raised since then; nil = it was not
	// Skills are those that the model has activated since the run began; what was before stands in Settled.
	Skills []SkillDetail `json:"skills,omitempty"`
	// Asks are those that have no answer yet, Grants what was given with answers and not taken back.
	Asks    []Ask          `json:"asks,omitempty"`
	Grants  []permit.Grant `json:"grants,omitempty"`
	Refused types.Denials  `json:"refused,omitzero"`
	// Unmet is not 0 if a call was refused and none has done anything since: the step from which on one counts for that. A run that ends so by itself was refused
	// (types.ExitRefused), and the next one begins anew.
	Unmet  int         `json:"unmet,omitempty"`
	PID    types.PID   `json:"pid,omitempty"`
	Runs   int         `json:"runs,omitempty"`
	Origin *ForkDetail `json:"origin,omitempty"`

	Step     int     `json:"step"`                         // the last one that has ended
	Failed   int     `json:"failed_calls,omitempty"`       // of all steps
	Taken    int     `json:"failed_calls_taken,omitempty"` // of Failed: those that a fork has of its origin
	Tokens   int     `json:"tokens_used"`
	Estimate bool    `json:"estimated,omitempty"`
	CostUSD  float64 `json:"cost_usd,omitempty"`
	// Unpriced are the tokens of which nobody knows what they cost. Spending is what the history has used
	// itself, a fork without its origin.
	Unpriced int        `json:"unpriced_tokens,omitempty"`
	Spending []Spending `json:"spending,omitempty"`
	Provider string     `json:"provider,omitempty"` // of the last answer
	Model    string     `json:"model,omitempty"`

	Active time.Duration `json:"active_ns"` // how long it has lived, without pauses and the time between runs
	Began  time.Time     `json:"-"`         // since when Active is to be counted on; zero = it stands still
	// Answered is the answer whose step has not ended; nil = there is none.
	Answered *Answer `json:"-"`
}

// Folded reports whether the fold of this program has made l.
func (l *Life) Folded() bool { return l.Version == lifeVersion }

// Apply folds the next record in. Records come in order, each once.
func (l *Life) Apply(r *Record) {
	now := r.Time.Round(0) // as the file has it, without the reading of the process's own clock
	if l.Seq == 0 {
		l.Created = now
	}
	l.Version, l.Seq = lifeVersion, r.Seq
	l.pass(r, now)
	switch r.Kind {
	case KindMessage:
		if r.Message.Role == rnixctx.RoleAssistant {
			l.Answered = &Answer{Step: l.Step + 1}
			if r.Answer != nil {
				*l.Answered = *r.Answer
				l.count(r.Answer)
			}
		}
	case KindStep:
		l.step(r.Step)
	case KindMarker:
		l.marker(r.Marker, r.Seq, now)
	}
	l.Time = now
}

// pass counts the time up to a record. Before one that a later daemon has written nothing ran: how long
// the process had lived when its daemon broke off is known up to the record before. While a person is asked it stands still.
func (l *Life) pass(r *Record, now time.Time) {
	if m := r.Marker; m != nil && (m.Name == MarkerInterrupted || m.Name == MarkerResumed) {
		l.Began = time.Time{}
	}
	if !l.Began.IsZero() && now.After(l.Began) {
		if len(l.Asks) == 0 {
			l.Active += now.Sub(l.Began)
		}
		l.Began = now
	}
}

func (l *Life) step(r *StepRecord) {
	if a := l.Answered; a == nil || a.Step != r.StepNumber || a.TokensUsed == 0 && a.Started.IsZero() { // no answer has said what it cost
		l.count(r.Answer())
	} else if r.TokensUsed > a.TokensUsed {
		l.count(r.Answer().Beyond(a))
	}
	l.Step = max(l.Step, r.StepNumber)
	l.Failed += r.failed()
	if r.StepNumber >= l.Unmet && r.Did() {
		l.Unmet = 0
	}
	l.Crashes, l.Answered, l.Asks = 0, nil, without(l.Asks, func(a *Ask) bool { return !a.Own })
}

func (l *Life) count(a *Answer) {
	l.spent(a, AddSpending)
	l.Provider, l.Model = cmp.Or(a.Provider, l.Provider), cmp.Or(a.Model, l.Model)
}

// spent adds what an answer took, or may have taken.
func (l *Life) spent(a *Answer, add func([]Spending, *Answer) []Spending) {
	if a.Metered {
		return
	}
	l.Tokens += a.TokensUsed
	l.Estimate = l.Estimate || a.Estimated
	l.CostUSD += a.CostUSD
	l.Unpriced += a.Unpriced()
	l.Spending = add(l.Spending, a)
}

func (l *Life) marker(m *Marker, seq uint64, now time.Time) {
	if m.PID != 0 {
		l.PID = m.PID
	}
	switch m.Name {
	case MarkerSpawn, MarkerResumed:
		l.begin(m, seq, now)
	case MarkerFork:
		var f ForkDetail
		if seq == 1 && json.Unmarshal(m.Detail, &f) == nil { // others are those of its origin
			l.Origin = &f
		}
	case MarkerPause:
		if !l.Paused {
			l.Paused, l.PausedAt = true, now
		}
		l.Began = time.Time{}
	case MarkerResume:
		if l.Paused {
			l.Paused, l.PausedAt, l.Began = false, time.Time{}, now
		}
	case MarkerExit:
		l.end(PhaseEnded)
		l.Asks, l.Unmet = nil, 0
		l.Exit, l.Result, l.Ended, l.Paused, l.PausedAt = m.Exit, m.Text, now, false, time.Time{}
	case MarkerSuspended:
		var d SuspendDetail
		_ = json.Unmarshal(m.Detail, &d) // it says less then
		l.end(PhaseSuspended)
		l.Wait, l.Wake, l.Hint, l.Exit, l.Purse = types.SuspendFor(d.Kind, m.Text), d.Wake, d.Hint, m.Exit, d.Purse
	case MarkerSkill:
		if skill, ok := Activated(m); ok {
			l.Skills = append(slices.Clip(l.Skills), skill)
		}
	case MarkerName:
		name := m.Text
		l.Name = &name
	case MarkerLimit:
		var d LimitDetail
		if json.Unmarshal(m.Detail, &d) == nil {
			if l.Limit != nil {
				d.Tokens, d.USD = d.Tokens+l.Limit.Tokens, dollars(d.USD, l.Limit.USD)
			}
			l.Limit = &d
		}
	case MarkerCutOff:
		if a, ok := CutOff(m); ok {
			l.spent(a, AddCutOff)
		}
	case MarkerMetered:
		if a, ok := Metered(m); ok {
			l.spent(a, AddSpending)
		}
	case MarkerCompact:
		focus := m.Text
		l.Compact = &focus
	case MarkerCompaction:
		if !wishLeft(m) {
			l.Compact = nil
		}
		if a, ok := SummedUp(m); ok {
			l.spent(a, AddSpending)
		}
	case MarkerAsk, MarkerAnswer, MarkerDenied, MarkerGrant, MarkerRevoke:
		l.asks(m, seq)
	case MarkerDaemonStop:
		l.end(PhaseStopped)
	case MarkerInterrupted:
		if l.Phase == PhaseRunning {
			l.end(PhaseBroken)
			l.Crashes++
		}
	}
}

// begin folds the beginning of a run, which leaves nothing of how the one before ended.
func (l *Life) begin(m *Marker, seq uint64, now time.Time) {
	l.Settled, l.Runs = m.Detail, l.Runs+1
	if l.Own(seq) {
		Forked(l)
		l.Runs, l.Compact = 1, nil
	}
	l.Intent = ""
	if m.Name == MarkerSpawn && m.Settled().Intent == "" {
		l.Intent = m.Text
	}
	l.Phase, l.Paused, l.PausedAt, l.Exit, l.Ended, l.Result = PhaseRunning, false, time.Time{}, nil, time.Time{}, ""
	l.Wait, l.Hint, l.Wake = types.Suspension{}, "", time.Time{}
	l.Limit, l.Purse, l.Name, l.Skills = nil, nil, nil, nil
	l.Asks = without(l.Asks, own)
	if l.Began = now; m.Text == ByPerson { // who knows what has happened, and says to go on
		l.Crashes = 0
	}
}

// Forked makes of what the records of an origin amount to that of a fork whose own life begins: what was used before then was used by its origin.
func Forked(l *Life) {
	l.Active, l.Runs, l.Spending, l.Taken = 0, 0, nil, l.Failed
}

func (l *Life) end(p Phase) {
	l.Phase, l.Began, l.Asks = p, time.Time{}, without(l.Asks, own)
}

// Own reports whether the record with this number is that with which a fork's own life begins.
func (l *Life) Own(seq uint64) bool { return l.Origin != nil && seq == l.Origin.Records+2 }

// Unfinished reports whether the history is a fork that was never finished.
func (l *Life) Unfinished() bool { return l.Origin != nil && l.Seq < l.Origin.Records+1 }

// Was returns what the last run was started with, and what was set since. It is an error if the history does not say.
func (l *Life) Was() (Settled, error) {
	var was Settled
	if len(l.Settled) == 0 {
		return was, errors.New("it has no spawn record")
	}
	err := json.Unmarshal(l.Settled, &was)
	if l.Name != nil {
		was.Name = *l.Name
	}
	if m := l.Limit; m != nil {
		was.ContextBudget, was.BudgetUSD = was.ContextBudget+m.Tokens, dollars(was.BudgetUSD, m.USD)
	}
	return was, err
}

// dollars adds exactly.
func dollars(a, b float64) float64 { return (price.FromFloat(a) + price.FromFloat(b)).Float() }

// Info returns what lists show of a history, as its records say it. What only a running process knows is missing. A history that has not ended is
// Suspended.
func (l *Life) Info(id types.UUID) ProcInfo {
	was, err := l.Was()
	if err != nil {
		was.ProcInfo = ProcInfo{}
	}
	p := was.ProcInfo
	p.V, p.UUID, p.Intent = FormatVersion, id, cmp.Or(p.Intent, l.Intent)
	l.Put(&p)
	return p
}

// Put brings what lists show of a history that does not run up to its records. What only a running process knows stays.
func (l *Life) Put(p *ProcInfo) {
	l.PutSet(p)
	if was, err := l.Was(); err == nil {
		_, p.Skills = WithSkills("", was.Skills, l.Skills)
		p.FailedCounted = was.FailedCounted
	}
	if l.PID != 0 {
		p.PID = l.PID
	}
	p.Exit, p.DeadAt, p.PausedAt, p.WakeAt, p.Purse = nil, l.Ended, time.Time{}, time.Time{}, nil
	p.Suspended, p.Suspension = true, l.suspension()
	switch {
	case l.Phase == PhaseEnded:
		p.State, p.Suspended, p.Exit, p.Result = types.StateDead, false, l.Exit, l.Result
	case l.Phase != "":
		p.State = types.StateRunning
	}
	switch {
	case l.Paused: // whatever else it waits for
		p.PausedAt = l.PausedAt
	case l.Phase == PhaseSuspended:
		p.Exit, p.WakeAt, p.Purse = l.Exit, l.Wake, l.Purse
	}
	if p.OriginUUID, p.OriginStep = (types.UUID{}), 0; l.Origin != nil {
		p.OriginUUID, p.OriginStep = l.Origin.Origin, l.Origin.Step
	}
	if p.Step = l.Step; l.Answered != nil {
		p.Step = max(p.Step, l.Answered.Step) // it has begun, and is gone on with
	}
	if p.Asks = l.Asks; l.Phase == PhaseEnded {
		p.Asks = nil
	}
	p.TokensUsed, p.CostUSD, p.Unpriced, p.Spending = l.Tokens, l.CostUSD, l.Unpriced, l.Spending
	p.Provider, p.Model = cmp.Or(l.Provider, p.Provider), cmp.Or(l.Model, p.Model)
	p.Denials, p.FailedCalls, p.FailedTaken = l.Refused, l.Failed, l.Taken
	p.Runs, p.ActiveTotal, p.UpdatedAt = l.Runs, l.Active, l.Time
	if p.CreatedAt.IsZero() {
		p.CreatedAt = l.Created
	}
}

// PutSet is Put for what can be set of a process from outside: its name and its budget.
func (l *Life) PutSet(p *ProcInfo) {
	was, err := l.Was()
	if err == nil || l.Name != nil {
		p.Name = was.Name
	}
	if err == nil {
		p.ContextBudget, p.BudgetUSD = was.ContextBudget, was.BudgetUSD
	}
}

// suspension is why it is suspended; the zero value if it has ended.
func (l *Life) suspension() types.Suspension {
	switch {
	case l.Phase == PhaseEnded:
		return types.Suspension{}
	case l.Paused:
		return types.Suspend(types.SuspendPaused)
	case l.Phase == PhaseSuspended:
		return l.Wait
	case l.Phase == PhaseStopped:
		return types.Suspend(types.SuspendStopped)
	}
	return types.Suspend(types.SuspendBroken)
}
