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
