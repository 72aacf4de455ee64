package harness

import "math"

// tokens is a number of tokens as a program says it.
func tokens(n float64) int {
	if !(n > 0) {
		return 0
	}
	return int(math.Min(n, 1<<50))
}

// dollars is an amount as a program says it.
func dollars(n float64) float64 {
	if !(n > 0) || math.IsInf(n, 0) {
		return 0
	}
	return n
}
