package weigh

import (
	"math"
	"testing"
)

func TestPromptsAreEstimatedByWhatWasCountedOfTheirModel(t *testing.T) {
	var c Counts
	a, b := Model{"p", "a"}, Model{"q", "b"}
	want := func(when string, tokens float64, known bool, models ...Model) {
		t.Helper()
		if n, ok := c.PerByte(models); math.Abs(n-tokens) > 1e-9 || ok != known {
			t.Errorf("%s: %v, %v", when, n, ok)
		}
	}
	want("nothing is counted", uncounted, false, a)
	c.Add(a, 1000, 240)
	want("one is counted", 0.24*countRoom, true, a)
	want("another one", uncounted, false, b)
	want("either may answer", uncounted, false, a, b)
	c.Add(b, 100, 80)
	want("the one that counts more", 0.8*countRoom, true, a, b)
	c.Add(a, 1000, 400)
	want("more is believed at once", 0.4*countRoom, true, a)
	c.Add(a, 1000, 200)
	want("fewer bit by bit", (0.75*0.4+0.25*0.2)*countRoom, true, a)
	for _, odd := range []struct{ bytes, tokens int }{{0, 5}, {5, 0}, {-1, -1}} {
		c.Add(b, odd.bytes, odd.tokens)
	}
	c.Add(b, 1, 1<<40)
	want("nonsense", mostPerByte*countRoom, true, b)
}

// A prompt has no more tokens than one that was counted and what was added to that.
func TestPartsThatWereCountedBoundPrompts(t *testing.T) {
	var c Counts
	m, other := Model{"p", "m"}, Model{"p", "m2"}
	want := func(when string, tokens int, m Model, parts ...Part) {
		t.Helper()
		if n := c.Most(m, parts); n != tokens {
			t.Errorf("%s: %d, want %d", when, n, tokens)
		}
	}
	tools, one, two := Part{1, 1000}, Part{2, 100}, Part{3, 10}
	want("nothing is counted", 1100, m, tools, one)
	c.Learn(m, []Part{tools, one}, 300)
	want("the same", 300, m, tools, one)
	want("in another order, and more", 310, m, one, two, tools)
	want("a part twice", 400, m, tools, one, one)
	want("less", 300, m, tools)
	want("another model", 1000, other, tools)
	want("what is smaller than what was counted", 10, m, two)
	c.Learn(m, []Part{tools}, 200)
	want("the nearest one", 210, m, tools, two)
	for i := range uint64(maxPrompts) {
		c.Learn(other, []Part{{100 + i, 5}}, 1)
	}
	want("it was forgotten", 1000, m, tools)
	c.Learn(other, make([]Part, maxPromptParts+1), 1)
	want("too many parts", 0, other)
}
