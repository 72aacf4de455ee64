package price

import (
	"fmt"
	"slices"
	"strings"
)

// Spent returns what something has cost, as people read it everywhere: "-" where no tokens were used, "free" where
// all of them cost nothing, "?" where nobody knows what they cost, "$1.25" where it is known, and "$1.25+?"
// where it is known of a part. usd is in dollars, unpriced are those of the tokens that have no known price.
func Spent(usd float64, tokens, unpriced int) string {
	switch {
	case usd <= 0 && unpriced > 0:
		return "?"
	case unpriced > 0:
		return FromFloat(usd).String() + "+?"
	case usd > 0:
		return FromFloat(usd).String()
	case tokens > 0:
		return "free"
	}
	return "-"
}

// Behind returns what is said behind a number of tokens, of which Spent says what they have cost: nothing of what is free.
func Behind(usd float64, tokens, unpriced int) string {
	switch s := Spent(usd, tokens, unpriced); {
	case usd <= 0 && unpriced > 0:
		return ", cost " + s
	case usd > 0:
		return ", " + s
	}
	return ""
}

// Unknown is the sentence that explains "?" and "+?" below a list. n is how many tokens have no known price.
func Unknown(n string) string {
	return n + " tokens have no known price and are in no sum of dollars; add their models to prices.yaml, as this shows: rnix help cost"
}

// fewModels is how many models Missing names.
const fewModels = 3

// Missing is the sentence that explains "?" beside processes: of which models no price is known, and how one is set. There is at least one model.
func Missing(models []string) string {
	slices.Sort(models)
	more := ""
	if n := len(models) - fewModels; n > 0 {
		more = fmt.Sprintf(" and %d more", n)
	}
	return "cost ?: no price is known for " + strings.Join(models[:min(len(models), fewModels)], ", ") + more + "; set it in prices.yaml, as this shows: rnix help cost"
}
