package step

import (
	"testing"
	"time"

	"rnix/internal/permit"
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
