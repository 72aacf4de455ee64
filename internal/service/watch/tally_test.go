package watch

import (
	"testing"

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
