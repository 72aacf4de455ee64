package supervisor

import (
	"testing"

	"rnix/types"
)

// A transient child is started again after a failure, and not if it would do the same: nobody has stopped it, and nothing was refused to it.
func TestWhichEndsAreFailures(t *testing.T) {
	for code, want := range map[int]bool{types.ExitOK: false, types.ExitRefused: false, types.ExitCancelled: false, types.ExitError: true, types.ExitBudget: true, types.ExitNoProgress: true} {
		if got := failure(types.ExitStatus{Code: code}); got != want {
			t.Errorf("%d: %v, want %v", code, got, want)
		}
	}
}
