package step

import (
	"testing"
	"time"

	"rnix/internal/permit"
	"rnix/types"
)

// An ask about a call of an agent CLI outlasts the steps of its run, and not the run.
func TestAnAskOfAnAgentCLIEndsWithItsRun(t *testing.T) {
	add := func(l *Life, m Marker, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		l.Apply(&Record{Seq: l.Seq + 1, Time: time.Unix(int64(l.Seq), 0), Kind: KindMarker, Marker: &m})
	}
	for end, left := range map[string]int{MarkerSuspended: 1, MarkerDaemonStop: 1, MarkerInterrupted: 1, MarkerResumed: 1, MarkerExit: 0, MarkerPause: 2} {
		var l Life
		add(&l, Marker{Name: MarkerSpawn, PID: 1}, nil)
		m, err := AskMarker(1, &Ask{Number: 1, Own: true})
		add(&l, m, err)
		l.Apply(&Record{Seq: l.Seq + 1, Kind: KindStep, Step: &StepRecord{StepNumber: 1}})
		if len(l.Asks) != 1 {
			t.Errorf("it ends with a step: %v", l.Asks)
		}
		m, err = AskMarker(1, &Ask{Number: 2})
		add(&l, m, err)
		add(&l, Marker{Name: end, PID: 1}, nil)
		if len(l.Asks) != left {
			t.Errorf("%s: %v, want %d", end, l.Asks, left)
		}
	}
	var l Life
	add(&l, Marker{Name: MarkerSpawn, PID: 1}, nil)
	m, err := AskMarker(1, &Ask{Number: 1, Own: true})
	add(&l, m, err)
	m, err = AnswerMarker(1, &Answered{Number: 1, Withdrawn: true})
	if permit.Decision(m.Text) != Withdrawn {
		t.Error(m)
	}
	if add(&l, m, err); len(l.Asks) != 0 {
		t.Error(l.Asks)
	}
}

// What was refused counts until a later step has done something, over crashes and stops, and not for a run that begins after an end.
func TestARefusalCountsUntilSomethingIsDone(t *testing.T) {
	var l Life
	marker := func(m Marker, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		l.Apply(&Record{Seq: l.Seq + 1, Kind: KindMarker, Marker: &m})
	}
	done := func(n int, calls ...Call) {
		l.Apply(&Record{Seq: l.Seq + 1, Kind: KindStep, Step: &StepRecord{StepNumber: n, ToolCalls: calls}})
	}
	unmet := func(want bool) {
		t.Helper()
		if (l.Unmet > 0) != want {
			t.Errorf("unmet: %d, want %v", l.Unmet, want)
		}
	}
	good, bad := Call{Name: "shell"}, Call{Name: "shell", Error: "refused"}
	marker(Marker{Name: MarkerSpawn, PID: 1}, nil)
	marker(DeniedMarker(1, types.Denial{Tool: "shell"}, false))
	unmet(true)
	done(1, good, bad)
	unmet(true) // it was beside it
	for _, m := range []string{MarkerInterrupted, MarkerResumed, MarkerDaemonStop, MarkerResumed} {
		marker(Marker{Name: m, PID: 1}, nil)
		unmet(true)
	}
	done(2, bad, Call{Name: "plan"}, Call{Name: "complete"})
	unmet(true)
	done(3)
	unmet(true)
	done(4, good)
	unmet(false)
	marker(DeniedMarker(1, types.Denial{Tool: "Bash"}, true)) // of an agent CLI, in step 5, in whose record what it has done after that is
	unmet(true)
	done(5, bad)
	unmet(true)
	done(6, good)
	unmet(false)
	marker(AskMarker(1, &Ask{Number: 1, Own: true}))
	marker(AnswerMarker(1, &Answered{Number: 1}))
	unmet(true)
	done(7, good)
	unmet(false)
	marker(AskMarker(1, &Ask{Number: 2}))
	marker(AnswerMarker(1, &Answered{Number: 2, Because: "no"}))
	marker(Marker{Name: MarkerExit, PID: 1, Exit: &types.ExitStatus{Code: types.ExitRefused}}, nil)
	unmet(false)
	if l.Refused.Denied != 4 {
		t.Errorf("%+v", l.Refused)
	}
}
