package daemon_test

import "testing"

// allRight reports what a scenario has found wrong.
func allRight(t *testing.T, wrong []string) {
	t.Helper()
	for _, w := range wrong {
		t.Error(w)
	}
}
