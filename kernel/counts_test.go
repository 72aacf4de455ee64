package kernel

import (
	"math"
	"testing"

	"rnix/vfs"
)

func TestPromptsAreEstimatedByWhatWasCountedOfTheirModel(t *testing.T) {
	var c counts
	a, b := vfs.ModelName{Provider: "p", Model: "a"}, vfs.ModelName{Provider: "q", Model: "b"}
	want := func(when string, tokens float64, known bool, models ...vfs.ModelName) {
		t.Helper()
		if n, ok := c.perByte(models); math.Abs(n-tokens) > 1e-9 || ok != known {
			t.Errorf("%s: %v, %v", when, n, ok)
		}
	}
	want("nothing is counted", uncounted, false, a)
	c.add(a, 1000, 240)
	want("one is counted", 0.24*countRoom, true, a)
	want("another one", uncounted, false, b)
	want("either may answer", uncounted, false, a, b)
	c.add(answererOf([]vfs.ModelName{a, b}, "q"), 100, 80)
	want("the one that counts more", 0.8*countRoom, true, a, b)
	c.add(a, 1000, 400)
	want("more is believed at once", 0.4*countRoom, true, a)
	c.add(a, 1000, 200)
	want("fewer bit by bit", (0.75*0.4+0.25*0.2)*countRoom, true, a)
	for _, odd := range []struct{ bytes, tokens int }{{0, 5}, {5, 0}, {-1, -1}} {
		c.add(b, odd.bytes, odd.tokens)
	}
	c.add(b, 1, 1<<40)
	want("nonsense", mostPerByte*countRoom, true, b)
}
