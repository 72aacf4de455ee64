package watch

import (
	"encoding/json"
	"testing"
	"time"

	"rnix/ipc"
	"rnix/types"
)

func TestWhoWaitsForAPersonIsCountedAsWaiting(t *testing.T) {
	var sum tally
	for _, kind := range []types.SuspendKind{types.SuspendAsk, types.SuspendBudget, ""} {
		p := ipc.Proc{State: "running", WaitKind: kind}
		sum.add(&p, 1)
	}
	if got := sum.totals(); got.Waiting != 2 || got.Running != 1 {
		t.Errorf("%+v", got)
	}
}

func TestTheTimeOfWhoWaitsForAPersonDoesNotRun(t *testing.T) {
	for _, paused := range []bool{false, true} {
		p := ipc.Proc{State: "running", ClockPaused: paused, ElapsedMs: 1000}
		r := rowOf(&p, false)
		b, ok := (&table{at: r.read.Add(time.Second)}).appendRow(nil, r)
		var got ipc.Proc
		if err := json.Unmarshal(b, &got); err != nil || !ok {
			t.Fatal(err, ok)
		}
		want := int64(2000)
		if paused {
			want = 1000
		}
		if got.ElapsedMs != want {
			t.Errorf("clock paused: %t: %d ms", paused, got.ElapsedMs)
		}
	}
}

func TestAllThatHasFailedIsCounted(t *testing.T) {
	var e ipc.Ended
	for _, state := range []string{"running", "suspended", "zombie", "dead", "archived"} {
		for _, code := range []int{0, 4} {
			countEnded(&e, &ipc.Proc{State: state, ProcStatus: types.ProcStatus{Exit: &types.ExitStatus{Code: code}}})
		}
	}
	if e != (ipc.Ended{Count: 6, Failed: 3}) {
		t.Errorf("%+v", e)
	}
}
