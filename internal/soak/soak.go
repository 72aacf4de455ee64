// Package soak says how much of a statistical test is tried: a little in the gate, much in "make soak". Seeds, kills,
// storms and fights find more the longer they run; what they promise is the same in both.
package soak

import (
	"os"
	"testing"
)

// Env is the variable that makes all tests long, if it is not empty.
const Env = "RNIX_SOAK"

// On reports whether tests are long.
func On() bool { return os.Getenv(Env) != "" }

// Pick returns gate, or soak if tests are long, and logs which: the report of "./test" counts and lists these lines.
// what names the amount and its unit: "kills", "seconds of storm".
func Pick[T any](t testing.TB, what string, gate, soak T) T {
	t.Helper()
	if On() {
		t.Logf("soak: %s: %v (in the gate %v)", what, soak, gate)
		return soak
	}
	t.Logf("short: %s: %v (in a soak %v)", what, gate, soak)
	return gate
}
