package price

// Sum returns what is said behind the tokens of a sum: ", $1.25", ", $1.25+? (300 tokens have an unknown price)", or nothing of what is free. n are the
// tokens without a known price as people read numbers.
func Sum(usd float64, tokens, unpriced int, n string) string {
	s := Behind(usd, tokens, unpriced)
	if unpriced > 0 {
		s += " (" + n + " tokens have an unknown price)"
	}
	return s
}
