package price

import "math"

// Rate is what a model costs: units of USD times a million, per million tokens, so that a rate times a number
// of tokens, over a million, is an amount. The zero value costs nothing.
type Rate struct {
	Input, Output, CacheRead, CacheWrite int64
	CacheHour                            int64 // of a cache that is kept for an hour, as Anthropic has it
	// Over are the rates of a request whose prompt has more than OverTokens tokens; nil = there are none.
	Over       *Rate
	OverTokens int
}

// Tokens are those of one answer. The parts do not overlap, but CacheHour is a part of CacheWrite.
type Tokens struct{ Input, Output, CacheRead, CacheWrite, CacheHour int }

// Cost returns what an answer costs, rounded up; at most Max.
func (r *Rate) Cost(t Tokens) USD {
	if prompt := t.Input + t.CacheRead + t.CacheWrite; r.Over != nil && prompt > r.OverTokens {
		return r.Over.Cost(t)
	}
	var sum float64 // of what would be too much for whole numbers
	var exact int64
	for _, p := range []struct {
		n    int
		rate int64
	}{{t.Input, r.Input}, {t.Output, r.Output}, {t.CacheRead, r.CacheRead}, {t.CacheWrite - t.CacheHour, r.CacheWrite}, {t.CacheHour, r.CacheHour}} {
		sum += float64(max(p.n, 0)) * float64(p.rate)
		exact += int64(max(p.n, 0)) * p.rate
	}
	if sum >= float64(Max)*perMillion/2 {
		return Max
	}
	return USD((exact + perMillion - 1) / perMillion)
}

// perMillion is how many tokens a price is said for.
const perMillion = 1_000_000

// Worst returns the most that a token of a prompt, which may be kept for an hour, and one of an answer can cost.
func (r *Rate) Worst(hour bool) (prompt, answer USD) {
	of := func(r *Rate) int64 {
		in := max(r.Input, r.CacheRead, r.CacheWrite)
		if hour {
			in = max(in, r.CacheHour)
		}
		return in
	}
	in, out := of(r), r.Output
	if o := r.Over; o != nil {
		in, out = max(in, of(o)), max(out, o.Output)
	}
	up := func(rate int64) USD { return USD((rate + perMillion - 1) / perMillion) }
	return up(in), up(out)
}

// Flat returns the rate of a model of which every token costs the same, in dollars per million.
func Flat(usd float64) Rate {
	n := rate(usd)
	return Rate{Input: n, Output: n, CacheRead: n, CacheWrite: n, CacheHour: n}
}

// rate converts dollars per million tokens.
func rate(usd float64) int64 { return int64(math.Ceil(usd*float64(Dollar) - 1e-3)) }
