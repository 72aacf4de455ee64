//go:build amd64 || arm64

package sandbox

import (
	"slices"
	"testing"

	"rnix/internal/sandbox/enter"
)

// A command in a box is no helper of another one, whatever its environment was to be.
func TestTheJobOfAHelperDoesNotReachItsCommand(t *testing.T) {
	env := []string{"A=1", enter.Variable + "=200", enter.Variable + "X=2"}
	for _, rung := range []Rung{RungBwrap, RungLandlock} {
		j := jobOf(Plan{Rung: rung}, Command{Path: "/bin/true", Dir: "/", Env: env})
		if want := []string{"A=1", enter.Variable + "X=2"}; !slices.Equal(j.Env, want) {
			t.Errorf("%s: %q, want %q", rung, j.Env, want)
		}
	}
	if env[1] != enter.Variable+"=200" {
		t.Errorf("the caller's environment was changed: %q", env)
	}
}
