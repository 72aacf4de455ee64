package price

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// USD is an amount of money: US dollars in units of 1e-9, so that sums are exact. Costs are rounded up.
type USD int64

// The unit, and the largest amount that is taken as a limit or believed as a cost of one answer.
const (
	Dollar USD = 1_000_000_000
	Max    USD = 1_000_000 * Dollar
)

// FromFloat returns an amount of dollars, rounded up, between 0 and Max. What is no number counts as Max: a
// cost must not become nothing.
func FromFloat(dollars float64) USD {
	switch {
	case math.IsNaN(dollars) || dollars >= Max.Float():
		return Max
	case dollars <= 0:
		return 0
	}
	return USD(math.Ceil(dollars*float64(Dollar) - 1e-3)) // 0.1 is 100,000,000 and not one more
}

// Float returns the amount in dollars.
func (u USD) Float() float64 { return float64(u) / float64(Dollar) }

// String returns the amount as people read it: $1.25, $0.0042, $0 for nothing at all, and <$0.000001 for what is less than that.
func (u USD) String() string {
	switch d := u.Float(); {
	case u == 0:
		return "$0"
	case d < 0.01 && d > -0.01:
		digits := strings.TrimRight(strconv.FormatFloat(d, 'f', 6, 64), "0")
		if strings.HasSuffix(digits, ".") { // less than it can show
			return "<$0.000001"
		}
		return "$" + digits
	case d < 1 && d > -1:
		return fmt.Sprintf("$%.3f", d)
	default:
		return fmt.Sprintf("$%.2f", d)
	}
}

// ParseUSD reads an amount that a person wrote: 2.50 or $2.50, at least 0 and at most Max.
func ParseUSD(s string) (USD, error) {
	digits := strings.TrimPrefix(strings.TrimSpace(s), "$")
	d, err := strconv.ParseFloat(digits, 64)
	if err != nil || !(d >= 0 && d <= Max.Float()) || strings.ContainsAny(digits, "eExXpP_iInN+-") {
		return 0, fmt.Errorf("%q is not an amount of US dollars such as 2.50, between 0 and %.0f", s, Max.Float())
	}
	return FromFloat(d), nil
}
