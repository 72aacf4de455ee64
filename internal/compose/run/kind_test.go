package run_test

import (
	"testing"

	"rnix/internal/compose"
	"rnix/internal/compose/run"
	"rnix/types"
)

func TestKindsOfFailures(t *testing.T) {
	for want, exit := range map[compose.Kind]types.ExitStatus{
		"":                 {},
		compose.Refused:    {Code: types.ExitRefused, Reason: types.ReasonRefused},
		compose.Cancelled:  {Code: types.ExitCancelled},
		compose.NoProgress: {Code: types.ExitError, Reason: types.ReasonMaxSteps},
		compose.TimedOut:   {Code: types.ExitError, Reason: types.ReasonTimeout + "3s"},
		compose.Error:      {Code: types.ExitBudget},
	} {
		if got := run.KindOf(exit); got != want {
			t.Errorf("%+v: %q, want %q", exit, got, want)
		}
	}
}
