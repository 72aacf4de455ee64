package recovery

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	rnixctx "rnix/context"
	"rnix/internal/permit"
	"rnix/internal/soak"
	"rnix/internal/step"
	"rnix/types"
)

// anyMarkers writes any sequence of anyMarkers, with some answers and steps between them, whether a program would write it or not.
type anyMarkers struct {
	r    *rand.Rand
	recs []step.Record
	at   time.Time
	fork uint64 // how many records it has of its origin; 0 = it is no fork
}

func (w *anyMarkers) detail(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return b
}

func (w *anyMarkers) settled() json.RawMessage {
	return w.detail(step.ProcInfo{ProcStatus: types.ProcStatus{Name: fmt.Sprint("n", w.r.IntN(9)), Intent: []string{"", "do"}[w.r.IntN(2)], Provider: "p", Labels: types.Labels{"k": "v"},
		ContextBudget: w.r.IntN(9), BudgetUSD: float64(w.r.IntN(9)) / 10}})
}

func (w *anyMarkers) marker() step.Marker {
	m := step.Marker{Name: []string{step.MarkerSpawn, step.MarkerResumed, step.MarkerExit, step.MarkerPause, step.MarkerPause, step.MarkerResume, step.MarkerDaemonStop,
		step.MarkerInterrupted, step.MarkerSuspended, step.MarkerName, step.MarkerLimit, step.MarkerCutOff, step.MarkerMetered, step.MarkerCompact, step.MarkerCompaction, step.MarkerNote, step.MarkerAlive, step.MarkerFork,
		step.MarkerInput, step.MarkerSkill, step.MarkerAsk, step.MarkerAsk, step.MarkerAnswer, step.MarkerGrant, step.MarkerRevoke, step.MarkerDenied, "of a newer program"}[w.r.IntN(27)], PID: types.PID(w.r.IntN(4))}
	switch m.Name {
	case step.MarkerSpawn, step.MarkerResumed:
		if m.Text = []string{"do", step.ByPerson}[w.r.IntN(2)]; w.r.IntN(8) > 0 {
			m.Detail = w.settled()
		}
	case step.MarkerExit:
		m.Text, m.Exit = "brought", &types.ExitStatus{Reason: "done"}
	case step.MarkerSuspended:
		m.Text, m.Exit = "budget: none is left", &types.ExitStatus{Code: types.ExitBudget}
		d := step.SuspendDetail{Hint: "--budget N", Purse: &step.PurseWait{UUID: types.UUID{1}}}
		if w.r.IntN(2) == 0 {
			d.Kind, d.Wake = types.SuspendBudget, w.at.Add(time.Hour)
		}
		m.Detail = w.detail(d)
	case step.MarkerAsk:
		m.Detail = w.detail(step.Ask{Number: 1 + w.r.Uint64N(3), CallID: "call", Tool: "shell", Text: "shell ls", Rule: "shell", Own: w.r.IntN(2) == 0})
	case step.MarkerAnswer:
		m.Detail = w.detail(step.Answered{Number: 1 + w.r.Uint64N(3), CallID: "call", Allow: w.r.IntN(2) == 0})
	case step.MarkerGrant:
		m.Detail = w.detail(permit.Grant{Number: 1 + w.r.Uint64N(3), Scope: permit.ForFamily, Tool: "shell", Match: "git *"})
	case step.MarkerDenied:
		m.Detail = w.detail(types.Denial{Tool: "shell", Text: "shell ls", Why: "no"})
	case step.MarkerRevoke:
		m.Detail = w.detail(1 + w.r.Uint64N(3))
	case step.MarkerSkill:
		m.Text, m.Detail = "tables", w.detail(step.SkillDetail{Name: "tables", Section: "# Skill: tables"})
	case step.MarkerName:
		m.Text = []string{"", "night"}[w.r.IntN(2)]
	case step.MarkerLimit:
		m.Detail = w.detail(step.LimitDetail{Tokens: w.r.IntN(9), USD: float64(w.r.IntN(9)) / 10})
	case step.MarkerCutOff:
		m.Detail = w.detail(step.Answer{TokensUsed: 3, Output: 3, Estimated: true})
	case step.MarkerCompact:
		m.Text = []string{"", "the names"}[w.r.IntN(2)]
	case step.MarkerCompaction:
		if w.r.IntN(2) == 0 {
			m.Detail, _ = step.CompactionDetail([]rnixctx.Message{{Role: rnixctx.RoleUser, Content: "do"}}, &step.Answer{TokensUsed: 4, Output: 4, Provider: "q", Model: "m"}, w.r.IntN(3) == 0)
		}
	case step.MarkerMetered:
		m.Detail = w.detail(step.Answer{TokensUsed: 5, Output: 5, Provider: "q", Model: "m", CostUSD: 0.5, CostFrom: "here"})
	}
	return m
}

// next writes a record.
func (w *anyMarkers) next() *step.Record {
	w.at = w.at.Add(time.Duration(1+w.r.IntN(9)) * time.Second)
	r := step.Record{Seq: uint64(len(w.recs) + 1), Time: w.at}
	a := step.Answer{Step: 1 + w.r.IntN(5), Started: w.at, Provider: "q", Model: "m", TokensUsed: 1 + w.r.IntN(9), CostUSD: 0.25, Metered: w.r.IntN(4) == 0}
	switch n := w.r.IntN(10); {
	case r.Seq == 1 && w.fork > 0:
		r.Kind, r.Marker = step.KindMarker, &step.Marker{Name: step.MarkerFork, Detail: w.detail(step.ForkDetail{Origin: types.UUID{7}, Step: 2, Records: w.fork})}
	case r.Seq == w.fork+2 && w.fork > 0:
		r.Kind, r.Marker = step.KindMarker, &step.Marker{Name: step.MarkerResumed, PID: 9, Detail: w.settled()}
	case n == 0:
		r.Kind, r.Message, r.Answer = step.KindMessage, &rnixctx.Message{Role: rnixctx.RoleAssistant, Content: "x"}, &a
	case n == 1:
		r.Kind, r.Step = step.KindStep, a.Begin()
		r.Step.FailedCalls = w.r.IntN(3)
	default:
		m := w.marker()
		r.Kind, r.Marker = step.KindMarker, &m
	}
	w.recs = append(w.recs, r)
	return &w.recs[len(w.recs)-1]
}

// said looks back for the last marker of some names, to where the last run began.
func said(recs []step.Record, names ...string) (last string, at time.Time) {
	for _, r := range recs {
		if r.Marker == nil {
			continue
		}
		for _, n := range names {
			if r.Marker.Name == n {
				last, at = n, r.Time
			}
		}
	}
	return last, at
}

// Whatever a record says, in whatever order: lists show of a process what it would be resumed from, also from a checkpoint.
func TestListsShowWhatAProcessIsResumedFrom(t *testing.T) {
	id := types.UUID{5}
	seen := map[string]bool{}                 // fields that were ever set
	diff := func(a, b step.ProcInfo) string { // cmp takes its time, with equal values too
		if reflect.DeepEqual(a, b) {
			return ""
		}
		return cmp.Diff(a, b)
	}
	for seed := range soak.Pick(t, "histories of 40 random records", uint64(50), 1000) {
		w := &anyMarkers{r: rand.New(rand.NewPCG(seed, 1)), at: time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC), fork: seed % 3 * 4}
		s, h := new(State), &step.History{UUID: id}
		for range 40 {
			r := w.next()
			s.Apply(r)
			h.Records = append(h.Records, *r)
			v := reflect.ValueOf(s.Life)
			for i := range v.NumField() {
				seen[v.Type().Field(i).Name] = seen[v.Type().Field(i).Name] || !v.Field(i).IsZero()
			}
			info := h.Info()
			if d := diff(info, s.Info(id)); d != "" {
				t.Fatalf("seed %d: lists and recovery: %s", seed, d)
			}
			cp, err := s.Checkpoint(id)
			if err != nil {
				t.Fatal(err)
			}
			again, ok := FromCheckpoint(cp)
			if !ok {
				t.Fatalf("seed %d: no checkpoint: %s", seed, cp.State)
			}
			if d := diff(info, again.Info(id)); d != "" {
				t.Fatalf("seed %d: from a checkpoint: %s", seed, d)
			}
			if _, err := s.Was(); err == nil { // what is shown from a small file of an earlier moment
				card := step.ProcInfo{ProcStatus: types.ProcStatus{Name: "earlier", ContextBudget: 77, Exit: new(types.ExitStatus), PausedAt: w.at}, WakeAt: w.at, Suspension: types.Suspend(types.SuspendHeld)}
				s.Put(&card)
				card.V, card.UUID, card.Intent, card.Labels, card.Provider, card.Model = info.V, info.UUID, info.Intent, info.Labels, info.Provider, info.Model
				if d := diff(info, card); d != "" {
					t.Fatalf("seed %d: an earlier small file: %s", seed, d)
				}
			}
			if text := contradiction(w.recs, &info, s); text != "" {
				t.Fatalf("seed %d, record %d (%+v): %s\n%+v", seed, len(w.recs), r.Marker, text, info)
			}
		}
	}
	for _, f := range reflect.VisibleFields(reflect.TypeFor[step.Life]()) {
		if !seen[f.Name] {
			t.Errorf("no sequence has set Life.%s: add the marker that does to this test", f.Name)
		}
	}
}

// contradiction says what of a list contradicts a look back at the records, or what recovery goes on from; empty = nothing.
func contradiction(recs []step.Record, info *step.ProcInfo, s *State) string {
	end, ended := said(recs, step.MarkerSpawn, step.MarkerResumed, step.MarkerExit, step.MarkerSuspended, step.MarkerDaemonStop)
	pause, _ := said(recs, step.MarkerPause, step.MarkerResume, step.MarkerExit, step.MarkerSpawn, step.MarkerResumed)
	paused, waits := pause == step.MarkerPause, end == step.MarkerSuspended && s.Phase == Suspended
	was, err := s.Was()
	switch {
	case paused != s.Paused || paused != !info.PausedAt.IsZero():
		return fmt.Sprintf("paused %v, recovery says %v", paused, s.Paused)
	case paused && s.Phase != Ended && info.Why() != types.SuspendPaused:
		return "it is paused"
	case info.Suspended != (s.Phase != Ended) || (info.State == types.StateDead) == info.Suspended:
		return "suspended or ended"
	case end == step.MarkerExit && (s.Phase != Ended || !info.DeadAt.Equal(ended) || info.Exit == nil || info.Result != "brought" || info.Waits()):
		return "it has ended"
	case waits && !paused && (info.Why() != types.SuspendBudget || info.Purse == nil || info.Exit == nil || !info.WakeAt.Equal(s.Wake)):
		return "it waits for a budget"
	case waits && !paused && !WaitsForBudget(types.UUID{1})(s), paused && WaitsForBudget(types.UUID{1})(s):
		return "recovery does not wait for the budget that lists show"
	case err == nil && (info.Name != was.Name || info.ContextBudget != was.ContextBudget || info.BudgetUSD != was.BudgetUSD || len(info.Labels) != len(was.Labels)):
		return fmt.Sprintf("it is resumed as %q with %d tokens, %v dollars", was.Name, was.ContextBudget, was.BudgetUSD)
	case info.Step < s.Step || s.Open == nil && info.Step != s.Step || s.Open != nil && info.Step != max(s.Step, s.Open.Answer.Step):
		return fmt.Sprintf("step %d", s.Step)
	case info.TokensUsed != s.Tokens || info.CostUSD != s.CostUSD || info.Runs != s.Runs || info.ActiveTotal != s.Active:
		return "counts"
	}
	return ""
}
