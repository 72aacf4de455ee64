package lifecycle

import (
	"strings"
	"testing"

	"rnix/internal/step"
	"rnix/kernel"
	"rnix/types"
)

// TestAForkHearsTheNamesOfChildrenWhereverTheyLie has one that has just begun, which the index has not got yet, one on disk and one that is nowhere.
func TestAForkHearsTheNamesOfChildrenWhereverTheyLie(t *testing.T) {
	young, stored, gone := types.NewUUID(), types.NewUUID(), types.NewUUID()
	b := &table{
		live:   []kernel.Info{{ProcStatus: types.ProcStatus{PID: 7, UUID: young, Name: "kid"}, State: types.StateRunning}},
		stored: []step.ProcInfo{{ProcStatus: types.ProcStatus{PID: 3, UUID: stored}}},
	}
	d := &forks{Names: &Names{Table: b, Index: index{b}}}
	for want, ids := range map[string][]types.UUID{
		"background before, PID 7 (kid), belongs":                                  {young},
		"background before, PID 3, belongs":                                        {stored},
		"before, PID 7 (kid), PID 3, " + gone.String() + ", belong to the process": {young, stored, gone},
	} {
		if got := d.leftBehind(ids); !strings.Contains(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	}
	if got := d.leftBehind(nil); got != "" {
		t.Errorf("of none: %q", got)
	}
}
