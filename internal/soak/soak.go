// Package soak says how much of a statistical test is tried: a little in the gate, much in "make soak". Seeds, kills,
// storms and fights find more the longer they run; what they promise is the same in both.
package soak

import (
	"os"
	"strconv"
	"testing"
)

// Env is the variable that makes all tests long, if it is not empty.
const Env = "RNIX_SOAK"

// On reports whether tests are long.
func On() bool { return os.Getenv(Env) != "" }

// Pick returns gate, or soak if tests are long, and logs which: "./test" counts and lists these lines. what names the
// amount and its unit: "kills", "seconds of storm".
func Pick[T any](t testing.TB, what string, gate, soak T) T {
	t.Helper()
	if On() {
		t.Logf("soak: %s: %v (in the gate %v)", what, soak, gate)
		return soak
	}
	t.Logf("short: %s: %v (in a soak %v)", what, gate, soak)
	return gate
}

// Number is Pick for numbers from 1 on, where the variable named env, if it is set, says another one.
func Number(t testing.TB, env, what string, gate, soak int) int {
	t.Helper()
	text := os.Getenv(env)
	if text == "" {
		return Pick(t, what, gate, soak)
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 {
		t.Fatalf("invalid %s=%q: want a number of %s, from 1 on", env, text, what)
	}
	return n
}
