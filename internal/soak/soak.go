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

// Cells returns which pairs of a row and a column a test plays: in a soak all, in the gate as many as it takes for each row and
// each column to be there, and other ones in another gate (TurnEnv). what names the pairs: "command lines and levels".
func Cells(t testing.TB, what string, rows, columns []string) (cells [][2]string) {
	t.Helper()
	n := max(len(rows), len(columns))
	if len(rows) == 0 || len(columns) == 0 {
		n = 0
	}
	gate, _ := gateNumber(t)
	for i := range n {
		cells = append(cells, [2]string{rows[i%len(rows)], columns[(i+int(gate/Turns))%len(columns)]})
	}
	if Pick(t, what, n, len(rows)*len(columns)) == n {
		return cells
	}
	cells = nil
	for _, r := range rows {
		for _, c := range columns {
			cells = append(cells, [2]string{r, c})
		}
	}
	return cells
}
