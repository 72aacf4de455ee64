package step

import (
	"slices"
	"testing"
	"time"
)

// The last model has a price, and another one, which answered before, has none: that one is named.
func TestModelsWithoutAPriceAreNamed(t *testing.T) {
	var list []Spending
	for _, a := range []Answer{{Provider: "p", Model: "free-of-price", TokensUsed: 5}, {Provider: "p", Model: "free-of-price", TokensUsed: 5, Started: time.Unix(1e9, 0)},
		{Provider: "p", Model: "priced", TokensUsed: 5, CostUSD: 1, CostFrom: "here"}, {Provider: "alone", TokensUsed: 5}} {
		list = AddSpending(list, &a)
	}
	if got := UnpricedModels(list, "p", "priced", 15); !slices.Equal(got, []string{"p/free-of-price", "alone"}) {
		t.Errorf("%q", got)
	}
	if got := UnpricedModels(nil, "p", "m", 5); !slices.Equal(got, []string{"p/m"}) {
		t.Errorf("what a fork has of its origin: %q", got)
	}
	if got := UnpricedModels(list[2:3], "p", "priced", 0); got != nil {
		t.Errorf("all have a price: %q", got)
	}
}
