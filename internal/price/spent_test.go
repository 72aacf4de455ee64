package price

import "testing"

func TestFreeUnknownAndNothingAreNotTheSame(t *testing.T) {
	for _, c := range []struct {
		usd              float64
		tokens, unpriced int
		want             string
	}{
		{0, 0, 0, "-"},
		{0, 1200, 0, "free"},
		{0, 1200, 1200, "?"},
		{0, 1200, 200, "?"},
		{1.25, 1200, 0, "$1.25"},
		{1.25, 1200, 200, "$1.25+?"},
		{0.0042, 10, 0, "$0.0042"},
		{0.5, 0, 0, "$0.500"}, // a provider that says what it took, and no tokens
	} {
		if got := Spent(c.usd, c.tokens, c.unpriced); got != c.want {
			t.Errorf("Spent(%v, %d, %d) = %q, want %q", c.usd, c.tokens, c.unpriced, got, c.want)
		}
	}
}
