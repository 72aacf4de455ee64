package daemon_test

import (
	"strings"
	"testing"
)

// waits lists the faults that are known and not mended yet, by the ID of the finding, and the shape of scenario that shows each.
// A scenario of such a shape is expected to fail, and says so when it does not any more; tests with random scenarios leave
// these shapes out. Who mends a fault removes its line, and nothing else.
var waits = map[string]string{
	"B19": "a process or a tree is resumed at the moment when a parent in it is being suspended (no scenario of its own: it needs the moment)",
}

// expects judges what a scenario of a shape has found wrong.
func expects(t *testing.T, id string, wrong []string) {
	t.Helper()
	shape, known := waits[id]
	switch {
	case known && len(wrong) == 0:
		t.Errorf("%s (%s) is not seen any more: take its line out of waits", id, shape)
	case known:
		t.Logf("%s, which is known: %q", id, wrong)
	default:
		for _, w := range wrong {
			t.Error(w)
		}
	}
}

// waiting reports whether a fault is known and not mended yet.
func waiting(id string) bool { _, known := waits[id]; return known }

// parentEnds reports whether a resume was refused as B19 says.
func parentEnds(text string) bool {
	return waiting("B19") && (strings.Contains(text, "the parent is ending") || strings.Contains(text, "no such process"))
}
