package testenv

import (
	"testing"

	"rnix/internal/step/journaltest"
	"rnix/types"
)

// LongHistory writes an ended process of n steps with a call each into the data directory of a daemon that does not run, and returns its
// UUID. The result of the call of step n/3 has "the needle" in it.
func LongHistory(t testing.TB, dir string, n int) types.UUID {
	t.Helper()
	return journaltest.Long(t, dir, n)
}
