package main

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// cpus is the number of processors at the end of a benchmark's name.
var cpus = regexp.MustCompile(`-\d+$`)

// read takes the figures out of what a benchmark run printed. Lines that are none are passed over.
func (s samples) read(pkg string, text []byte) {
	for line := range strings.Lines(string(text)) {
		f := strings.Fields(line)
		if len(f) < 4 || !strings.HasPrefix(f[0], "Benchmark") {
			continue
		}
		name := cpus.ReplaceAllString(strings.TrimPrefix(f[0], "Benchmark"), "")
		for i := 2; i+1 < len(f); i += 2 { // behind the number of iterations: value unit, value unit
			v, err := strconv.ParseFloat(f[i], 64)
			if err != nil {
				break
			}
			at := sample{pkg, name, f[i+1]}
			s[at] = append(s[at], v)
		}
	}
}

// spread is the median of some figures, and their range.
type spread struct{ mid, low, high float64 }

func spreadOf(v []float64) spread {
	v = slices.Sorted(slices.Values(v))
	n := len(v)
	return spread{(v[(n-1)/2] + v[n/2]) / 2, v[0], v[n-1]}
}

// result is a row with its figures.
type result struct {
	row
	Ours, Base, Ratio spread // Base and Ratio only if there is a baseline
	Verdict           string
}

// judge sets the figures of a row beside each other, round by round. It fails if there are none.
func (r row) judge(s samples) (result, error) {
	if r.unit == "" {
		r.unit = "ns/op"
	}
	res := result{row: r}
	ours := s[sample{r.pkg, r.ours, r.unit}]
	if len(ours) == 0 {
		return res, fmt.Errorf("%s: Benchmark%s gave no %s", r.pkg, r.ours, r.unit)
	}
	res.Ours = spreadOf(ours)
	if r.base != "" {
		base := s[sample{r.pkg, r.base, r.unit}]
		if len(base) != len(ours) {
			return res, fmt.Errorf("%s: Benchmark%s gave %d figures in %s, Benchmark%s %d", r.pkg, r.base, len(base), r.unit, r.ours, len(ours))
		}
		res.Base = spreadOf(base)
		if res.Base.low > 0 {
			ratios := make([]float64, len(ours))
			for i := range ours {
				ratios[i] = ours[i] / base[i]
			}
			res.Ratio = spreadOf(ratios)
		}
	}
	have := res.Ratio.mid
	if r.absolute {
		have = res.Ours.mid
	}
	switch {
	case r.target == 0 && r.gate == 0:
	case have <= r.target:
		res.Verdict = "meets"
	case have <= r.gate:
		res.Verdict = "within the gate"
	default:
		res.Verdict = "**misses**"
	}
	return res, nil
}
