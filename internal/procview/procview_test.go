package procview

import (
	"testing"

	"rnix/internal/step"
	"rnix/ipc"
	"rnix/kernel"
	"rnix/types"
)

func TestAForkTellsWhatItHasOfItsOriginLivingAndStored(t *testing.T) {
	spent := []step.Spending{{Provider: "p", Input: 40, CostUSD: 0.25}, {Provider: "q", Output: 10, Unpriced: 10}}
	status := types.ProcStatus{Step: 3, TokensUsed: 150, CostUSD: 1.25, Unpriced: 30}
	want := ipc.Taken{Tokens: 100, CostUSD: 1, Unpriced: 20}
	for where, p := range map[string]ipc.Proc{
		"living": Living(&kernel.Info{ProcStatus: status, Spending: spent, Origin: types.UUID{1}}), "stored": Stored(&step.ProcInfo{ProcStatus: status, Spending: spent, OriginUUID: types.UUID{1}}),
	} {
		if p.Taken == nil || *p.Taken != want || p.Own() != (ipc.Taken{Tokens: 50, CostUSD: 0.25, Unpriced: 10}) {
			t.Errorf("%s: %+v, own %+v", where, p.Taken, p.Own())
		}
	}
	if p := Living(&kernel.Info{ProcStatus: status, Spending: spent}); p.Taken != nil || p.Own().Tokens != 150 { // no fork
		t.Errorf("%+v", p.Taken)
	}
	if p := Stored(&step.ProcInfo{ProcStatus: types.ProcStatus{TokensUsed: 50, CostUSD: 0.25, Unpriced: 10}, Spending: spent, OriginUUID: types.UUID{1}}); p.Taken != nil {
		t.Errorf("%+v", p.Taken)
	}
}

func TestFailedCallsOfAnEarlierVersionAreUnknown(t *testing.T) {
	for _, c := range []struct {
		i    step.ProcInfo
		want bool
	}{
		{step.ProcInfo{ProcStatus: types.ProcStatus{Step: 3}}, true},
		{step.ProcInfo{ProcStatus: types.ProcStatus{Step: 3}, FailedCounted: true}, false},
		{step.ProcInfo{ProcStatus: types.ProcStatus{Step: 3, FailedCalls: 2}}, false},
		{step.ProcInfo{ProcStatus: types.ProcStatus{Step: 3, Kind: "supervisor"}}, false},
		{step.ProcInfo{}, false},
	} {
		if got := Stored(&c.i).FailedUnknown; got != c.want {
			t.Errorf("%+v: %v", c.i, got)
		}
	}
}
