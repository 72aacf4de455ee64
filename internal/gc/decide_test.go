package gc

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"rnix/internal/step"
	"rnix/types"
)

var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// uuid returns the n-th UUID, so that tables can name them.
func uuid(n int) types.UUID { return types.UUID{14: byte(n >> 8), 15: byte(n)} }

// ended returns a history that ended that long before epoch.
func dead(n int, ago time.Duration) Entry {
	return Entry{File: fmt.Sprintf("/data/steps/%d/proc-info.json", n),
		ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: uuid(n), PID: types.PID(n), Intent: fmt.Sprint("task ", n)}, State: types.StateDead, DeadAt: epoch.Add(-ago)}}
}

func with(e Entry, change func(*Entry)) Entry { change(&e); return e }

func running(n int, change func(*Entry)) Entry {
	e := dead(n, 0)
	e.State, e.DeadAt = types.StateRunning, time.Time{}
	if change != nil {
		change(&e)
	}
	return e
}

func TestEveryRuleOfWhatGoes(t *testing.T) {
	both := Policy{RetentionDays: 30, MaxEntries: 3}
	for _, tt := range []struct {
		name     string
		entries  []Entry
		policy   Policy
		goes     []int
		why      string // in the first that goes
		exempt   string // in the first exemption
		warnings []string
		kept     int
	}{
		{name: "nothing", policy: both},
		{name: "young", entries: []Entry{dead(1, 29*day)}, policy: both, kept: 1},
		{name: "exactly as old as may be", entries: []Entry{dead(1, 30*day)}, policy: both, kept: 1},
		{name: "too old", entries: []Entry{dead(1, 30*day+1)}, policy: both, goes: []int{1}, why: "ended 30 days ago, over the 30 of gc.retention_days"},
		{name: "too many", entries: []Entry{dead(1, 1), dead(2, 4), dead(3, 3), dead(4, 2), dead(5, 5)}, policy: both, goes: []int{5, 2}, kept: 3, why: "not among the latest 3, gc.max_entries"},
		{name: "either limit is enough", entries: []Entry{dead(1, 1), dead(2, 2), dead(3, 3), dead(4, 50*day), dead(5, 40*day)}, policy: both, goes: []int{4, 5}, kept: 3,
			why: "gc.retention_days; not among the latest 3"},
		{name: "no retention", entries: []Entry{dead(1, 9000*day)}, policy: Policy{MaxEntries: 1}, kept: 1},
		{name: "no number", entries: []Entry{dead(1, 1), dead(2, 31*day), dead(3, 2)}, policy: Policy{RetentionDays: 30}, goes: []int{2}, kept: 2},
		{name: "no limit at all", entries: []Entry{dead(1, 9000*day), dead(2, 9000*day)}, kept: 2},
		{name: "negative limits are none", entries: []Entry{dead(1, 9000*day), dead(2, 9000*day)}, policy: Policy{RetentionDays: -1, MaxEntries: -1}, kept: 2},
		{name: "huge retention", entries: []Entry{dead(1, 9000*day)}, policy: Policy{RetentionDays: 1 << 60}, kept: 1},
		{name: "running", entries: []Entry{running(1, nil)}, policy: both, exempt: "it is running"},
		{name: "created", entries: []Entry{running(1, func(e *Entry) { e.State = types.StateCreated })}, policy: both, exempt: "it is created"},
		{name: "paused", entries: []Entry{running(1, func(e *Entry) { e.Suspended = true })}, policy: both, exempt: "it is suspended and can be resumed"},
		{name: "suspended by a stop", entries: []Entry{with(dead(1, 90*day), func(e *Entry) { e.Suspended = true })}, policy: both, exempt: "it is suspended"},
		{name: "zombie", entries: []Entry{running(1, func(e *Entry) { e.State, e.Exit = types.StateZombie, &types.ExitStatus{} })}, policy: both, exempt: "was not reaped"},
		{name: "kept", entries: []Entry{with(dead(1, 90*day), func(e *Entry) { e.Pinned, e.Note = true, "for the trial" })}, policy: both, exempt: "it is kept: for the trial"},
		{name: "kept without a reason", entries: []Entry{with(dead(1, 90*day), func(e *Entry) { e.Pinned = true })}, policy: both, exempt: "it is kept"},
		{name: "origin of a running fork", entries: []Entry{dead(1, 90*day), running(2, func(e *Entry) { e.OriginUUID = uuid(1) })}, policy: both, exempt: "PID 2, which is running, was forked from it"},
		{name: "origin of the origin of a suspended fork", entries: []Entry{dead(1, 90*day), with(dead(2, 80*day), func(e *Entry) { e.OriginUUID = uuid(1) }),
			running(3, func(e *Entry) { e.OriginUUID, e.Suspended = uuid(2), true })}, policy: both, exempt: "PID 3, which is suspended, was forked from it"},
		{name: "origin of a fork that has ended", entries: []Entry{dead(1, 90*day), with(dead(2, day), func(e *Entry) { e.OriginUUID = uuid(1) })}, policy: both, goes: []int{1}, kept: 1},
		{name: "grandparent of a running process", entries: []Entry{dead(1, 90*day), with(dead(2, 80*day), func(e *Entry) { e.ParentUUID = uuid(1) }),
			running(3, func(e *Entry) { e.ParentUUID = uuid(2) })}, policy: both, exempt: "PID 3, which is running, descends from it"},
		{name: "child of a running process", entries: []Entry{running(1, nil), with(dead(2, 90*day), func(e *Entry) { e.ParentUUID = uuid(1) })}, policy: both, goes: []int{2}, exempt: "it is running"},
		{name: "node of a running workflow", entries: []Entry{running(1, func(e *Entry) { e.Kind = "compose" }), with(dead(2, 90*day), func(e *Entry) { e.ParentUUID = uuid(1) })}, policy: both, exempt: "it is running"},
		{name: "node of a suspended workflow", entries: []Entry{with(dead(2, 90*day), func(e *Entry) { e.ParentUUID = uuid(1) }),
			with(dead(1, 90*day), func(e *Entry) {
				e.Kind, e.Suspended, e.Exit = "compose", true, &types.ExitStatus{Code: types.ExitBudget}
			})}, policy: both, exempt: "PID 1, which is suspended, needs what it has brought"},
		{name: "node of a workflow that has ended", entries: []Entry{with(dead(1, day), func(e *Entry) { e.Kind = "compose" }), with(dead(2, 90*day), func(e *Entry) { e.ParentUUID = uuid(1) })}, policy: both, goes: []int{2}, kept: 1},
		{name: "circles", entries: []Entry{with(dead(1, 90*day), func(e *Entry) { e.ParentUUID, e.OriginUUID = uuid(2), uuid(1) }), with(dead(2, 90*day), func(e *Entry) { e.ParentUUID = uuid(1) }),
			running(3, func(e *Entry) { e.ParentUUID, e.OriginUUID = uuid(1), uuid(1) })}, policy: both, exempt: "PID 3"},
		{name: "unreadable", entries: []Entry{{ProcInfo: step.ProcInfo{ProcStatus: types.ProcStatus{UUID: uuid(1)}}, Problem: "/d/proc-info.json: damaged"}}, policy: both, warnings: []string{"/d/proc-info.json: damaged; it is kept"}},
		{name: "no dead_at", entries: []Entry{with(dead(1, 0), func(e *Entry) { e.DeadAt = time.Time{} })}, policy: both, warnings: []string{"/data/steps/1/proc-info.json: dead_at is missing"}},
		{name: "ended in the future", entries: []Entry{dead(1, -time.Second)}, policy: both, warnings: []string{"/data/steps/1/proc-info.json: dead_at is 2026-03-01T12:00:01Z, which is in the future"}},
		{name: "just ended", entries: []Entry{dead(1, time.Second), dead(2, time.Minute)}, policy: Policy{MaxEntries: 1, Grace: 2 * time.Second}, exempt: "it ended less than 2s ago", kept: 1},
		{name: "the exempt do not count", entries: []Entry{with(dead(1, 9*day), func(e *Entry) { e.Pinned = true }), dead(2, 2*day), running(3, nil)}, policy: Policy{MaxEntries: 1}, exempt: "it is kept", kept: 1},
		{name: "of equal age in the order of their creation", entries: []Entry{dead(3, 40*day), dead(1, 40*day), dead(2, 40*day)}, policy: Policy{RetentionDays: 1}, goes: []int{1, 2, 3}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			plan := Decide(tt.entries, tt.policy, epoch)
			if got := numbers(plan); !slices.Equal(got, tt.goes) {
				t.Errorf("%v go, want %v", got, tt.goes)
			}
			if tt.why != "" && (len(plan.Candidates) == 0 || !strings.Contains(plan.Candidates[0].Why, tt.why)) {
				t.Errorf("%+v", plan.Candidates)
			}
			if (tt.exempt == "") != (len(plan.Exempt) == 0) || tt.exempt != "" && !strings.Contains(plan.Exempt[0].Reason, tt.exempt) {
				t.Errorf("exempt %+v, want %q", plan.Exempt, tt.exempt)
			}
			if len(plan.Warnings) != len(tt.warnings) || len(tt.warnings) > 0 && !strings.HasPrefix(plan.Warnings[0], tt.warnings[0]) {
				t.Errorf("warnings %q, want %q", plan.Warnings, tt.warnings)
			}
			if plan.Kept != tt.kept {
				t.Errorf("%d kept, want %d", plan.Kept, tt.kept)
			}
			if n := len(plan.Candidates) + len(plan.Exempt) + len(plan.Warnings) + plan.Kept; n != len(tt.entries) {
				t.Errorf("%d of %d histories are accounted for", n, len(tt.entries))
			}
		})
	}
}

func numbers(p Plan) []int {
	var out []int
	for _, c := range p.Candidates {
		out = append(out, int(c.PID))
	}
	return out
}

// drawn makes histories of all kinds, with relations that may be circles or lead nowhere.
func drawn(t *rapid.T) []Entry {
	n := rapid.IntRange(0, 25).Draw(t, "n")
	out := make([]Entry, n)
	for i := range out {
		e := dead(i+1, time.Duration(rapid.IntRange(-1, 60).Draw(t, "days"))*day)
		e.State = rapid.SampledFrom([]types.ProcessState{types.StateDead, types.StateDead, types.StateDead, types.StateRunning, types.StateZombie, types.StateCreated}).Draw(t, "state")
		e.Suspended, e.Pinned = rapid.IntRange(0, 9).Draw(t, "suspended") == 0, rapid.IntRange(0, 5).Draw(t, "pinned") == 0
		e.OriginUUID, e.ParentUUID = uuid(rapid.IntRange(0, n+1).Draw(t, "origin")), uuid(rapid.IntRange(0, n+1).Draw(t, "parent"))
		switch rapid.IntRange(0, 12).Draw(t, "broken") {
		case 0:
			e.DeadAt = time.Time{}
		case 1:
			e.Problem = "broken"
		}
		out[i] = e
	}
	return out
}

func drawnPolicy(t *rapid.T) Policy {
	return Policy{RetentionDays: rapid.IntRange(0, 50).Draw(t, "retention"), MaxEntries: rapid.IntRange(0, 20).Draw(t, "max"), Grace: time.Duration(rapid.IntRange(0, 2).Draw(t, "grace")) * day}
}

// related says by its own way, from the definition, whether a living process leads to e.
func related(entries []Entry, id types.UUID) bool {
	at := map[types.UUID]Entry{}
	for _, e := range entries {
		at[e.UUID] = e
	}
	reaches := func(from Entry, up func(Entry) types.UUID) bool {
		for e, i := from, 0; i <= len(entries); i++ {
			next, ok := at[up(e)]
			if !ok {
				return false
			}
			if next.UUID == id {
				return true
			}
			e = next
		}
		return false
	}
	for _, e := range entries {
		alive := e.Problem == "" && (e.State != types.StateDead || e.Suspended) && e.Exit == nil
		if alive && (reaches(e, func(e Entry) types.UUID { return e.OriginUUID }) || reaches(e, func(e Entry) types.UUID { return e.ParentUUID })) {
			return true
		}
	}
	return false
}

func TestNothingExemptEverGoes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, policy := drawn(t), drawnPolicy(t)
		before := slices.Clone(entries)
		plan := Decide(entries, policy, epoch)
		if cmp.Diff(before, entries) != "" {
			t.Fatal("the entries were changed")
		}
		for _, c := range plan.Candidates {
			e := entries[c.PID-1]
			if e.State != types.StateDead || e.Suspended || e.Pinned || e.Problem != "" || e.DeadAt.IsZero() || e.DeadAt.After(epoch) || epoch.Sub(e.DeadAt) < policy.Grace || related(entries, e.UUID) {
				t.Fatalf("%+v goes", e)
			}
		}
		if policy.Off() && len(plan.Candidates) > 0 {
			t.Fatal("without a limit something goes")
		}
		if policy.MaxEntries > 0 && plan.Kept > policy.MaxEntries {
			t.Fatalf("%d are kept", plan.Kept)
		}
		if !slices.IsSortedFunc(plan.Candidates, func(a, b Candidate) int { return a.DeadAt.Compare(b.DeadAt) }) {
			t.Fatal("the oldest does not go first")
		}
		// What is left is within the limits.
		left := slices.DeleteFunc(slices.Clone(entries), func(e Entry) bool { return slices.Contains(numbers(plan), int(e.PID)) })
		if again := Decide(left, policy, epoch); len(again.Candidates) > 0 {
			t.Fatalf("a second time %v go", numbers(again))
		}
	})
}

func TestMoreTimeAndTighterLimitsOnlyAdd(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		entries, policy := drawn(t), drawnPolicy(t)
		base := numbers(Decide(entries, policy, epoch))
		contains := func(what string, more, less []int) {
			for _, n := range less {
				if !slices.Contains(more, n) {
					t.Fatalf("%s: %d goes only without it (%v, %v)", what, n, more, less)
				}
			}
		}
		contains("later", numbers(Decide(entries, policy, epoch.Add(time.Duration(rapid.IntRange(0, 90).Draw(t, "later"))*day))), base)
		tighter := policy
		if policy.RetentionDays > 1 {
			tighter.RetentionDays--
		}
		if policy.MaxEntries > 1 {
			tighter.MaxEntries--
		}
		contains("tighter", numbers(Decide(entries, tighter, epoch)), base)
		if len(entries) > 0 {
			pinned := slices.Clone(entries)
			pinned[rapid.IntRange(0, len(entries)-1).Draw(t, "pin")].Pinned = true
			contains("a pin", base, numbers(Decide(pinned, policy, epoch)))
		}
	})
}

func BenchmarkDecide(b *testing.B) {
	entries := make([]Entry, 10_000)
	for i := range entries {
		entries[i] = dead(i, time.Duration(i%90)*day)
		entries[i].UUID = types.NewUUID()
		if i > 0 {
			entries[i].ParentUUID = entries[i-1].UUID
		}
		if i%100 == 0 {
			entries[i].State, entries[i].DeadAt = types.StateRunning, time.Time{}
		}
	}
	for b.Loop() {
		Decide(entries, Policy{RetentionDays: 30, MaxEntries: 500}, epoch)
	}
}
