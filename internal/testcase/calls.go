package testcase

import (
	"fmt"
	"strings"
)

// compareCalls says how calls differ from the expected ones; "" if they do not.
func compareCalls(x *CallsExpect, got []Call) (what, diff string) {
	unordered := x.Match == MatchUnordered || x.Match == MatchContains
	switch {
	case len(got) > maxCalls:
		return fmt.Sprintf("%d calls were made, and no more than %d are compared", len(got), maxCalls), ""
	case len(x.List) > maxCalls:
		return fmt.Sprintf("%d calls are expected, and no more than %d are compared", len(x.List), maxCalls), ""
	case unordered && len(x.List)*len(got) > maxPairs:
		return fmt.Sprintf("%d calls are expected and %d were made: too many to compare in any order; write match: %s or %s", len(x.List), len(got), MatchExact, MatchOrdered), ""
	}
	fits := func(i, j int) bool { return matchCall(&x.List[i], &got[j]) == "" }
	var pairs []int // of each expected call: which one it is; -1 = none
	if unordered {
		pairs = assign(len(x.List), len(got), fits)
	} else {
		pairs = align(len(x.List), len(got), fits)
	}
	missing, taken := 0, make([]bool, len(got))
	for _, j := range pairs {
		if j < 0 {
			missing++
		} else {
			taken[j] = true
		}
	}
	extra := 0
	for j := range taken {
		if !taken[j] {
			extra++
		}
	}
	open := x.Match == MatchOrdered || x.Match == MatchContains
	if missing == 0 && (open || extra == 0) {
		return "", ""
	}
	if open {
		what = fmt.Sprintf("%d of %d expected calls are not among the %d that were made", missing, len(x.List), len(got))
	} else {
		what = fmt.Sprintf("%s not made, %s not expected", counted(missing, "expected call"), counted(extra, "call"))
	}
	return what, callDiff(x, got, pairs, taken, open)
}

// The bounds of a comparison.
const (
	maxCalls = 10_000  // of a run, and of a case
	maxPairs = 4 << 20 // of one and the other that are tried
)

// align finds the longest sequence of pairs in which both sides are in their order; where that would take too long, one
// that has all of m if there is one that has. It returns for each of m the one of n that it is paired with; -1 = none.
func align(m, n int, fits func(i, j int) bool) []int {
	pairs := make([]int, m)
	head := 0
	for ; head < min(m, n) && fits(head, head); head++ { // no better sequence leaves these apart
		pairs[head] = head
	}
	tail := 0
	for ; tail < min(m, n)-head && fits(m-1-tail, n-1-tail); tail++ {
		pairs[m-1-tail] = n - 1 - tail
	}
	rows, columns := m-head-tail, n-head-tail
	if rows*columns > maxPairs {
		first(pairs[head:head+rows], head, head+columns, func(i, j int) bool { return fits(head+i, j) })
		return pairs
	}
	table, best := make([][]bool, rows), make([][]int32, rows+1)
	best[rows] = make([]int32, columns+1)
	for i := rows - 1; i >= 0; i-- {
		table[i], best[i] = make([]bool, columns), make([]int32, columns+1)
		for j := columns - 1; j >= 0; j-- {
			best[i][j] = max(best[i+1][j], best[i][j+1])
			if table[i][j] = fits(head+i, head+j); table[i][j] {
				best[i][j] = max(best[i][j], best[i+1][j+1]+1)
			}
		}
	}
	for i, j := 0, 0; i < rows; {
		switch {
		case j < columns && table[i][j] && best[i][j] == best[i+1][j+1]+1:
			pairs[head+i] = head + j
			i, j = i+1, j+1
		case j >= columns || best[i][j] == best[i+1][j]:
			pairs[head+i] = -1
			i++
		default:
			j++
		}
	}
	return pairs
}

// first pairs each with the first one from j on, and before n, that it fits and that is behind those of the ones before it.
func first(pairs []int, j, n int, fits func(i, j int) bool) {
	tries := 0
	for i := range pairs {
		pairs[i] = -1
		for k := j; k < n && tries < maxPairs; k++ {
			if tries++; fits(i, k) {
				pairs[i], j = k, k+1
				break
			}
		}
	}
}

// assign finds as many pairs as there can be, whatever the order, by augmenting paths. It returns what align does.
func assign(m, n int, fits func(i, j int) bool) []int {
	table := make([]bool, m*n)
	for i := range m {
		for j := range n {
			table[i*n+j] = fits(i, j)
		}
	}
	owner := make([]int, n)
	for j := range owner {
		owner[j] = -1
	}
	var try func(i int, seen []bool) bool
	try = func(i int, seen []bool) bool {
		row := table[i*n : (i+1)*n]
		for j := range row {
			if row[j] && owner[j] < 0 {
				owner[j] = i
				return true
			}
		}
		for j := range row {
			if seen[j] || !row[j] {
				continue
			}
			seen[j] = true
			if try(owner[j], seen) {
				owner[j] = i
				return true
			}
		}
		return false
	}
	pairs := make([]int, m)
	for i := range pairs {
		pairs[i] = -1
		try(i, make([]bool, n))
	}
	for j, i := range owner {
		if i >= 0 {
			pairs[i] = j
		}
	}
	return pairs
}

// callDiff shows what was expected (-) and what was made (+), in order. Of a call that was expected where another
// one of the same tool was made, it says what is different.
func callDiff(x *CallsExpect, got []Call, pairs []int, taken []bool, open bool) string {
	var b strings.Builder
	j, told := 0, make([]bool, len(got))
	made := func(to int) {
		for ; j < to; j++ {
			if !taken[j] && !open {
				fmt.Fprintf(&b, "+ %s\n", got[j].String())
			}
		}
	}
	for i, at := range pairs {
		if at >= 0 {
			if x.Match != MatchUnordered && x.Match != MatchContains {
				made(at)
				j = at + 1
			}
			fmt.Fprintf(&b, "  %s\n", got[at].String())
			continue
		}
		fmt.Fprintf(&b, "- %s\n", x.List[i].String())
		for k := range got {
			if !taken[k] && !told[k] && got[k].Tool == x.List[i].Tool {
				told[k] = true
				fmt.Fprintf(&b, "    the call %s: %s\n", got[k].String(), matchCall(&x.List[i], &got[k]))
				break
			}
		}
	}
	made(len(got))
	return b.String()
}

// String is the call in one line.
func (c *Call) String() string {
	s := c.Tool + " " + brief(oneLine(c.Input), shown)
	if c.Process > 0 {
		s = fmt.Sprintf("[process %d] %s", c.Process, s)
	}
	if c.Error != "" {
		s += " (fails: " + c.Error + ")"
	}
	return s
}

// String is the expected call in one line.
func (x *CallExpect) String() string {
	s := x.Tool
	if x.Args != nil {
		s += " " + show(value(x.Args))
	}
	if x.Process > 0 {
		s = fmt.Sprintf("[process %d] %s", x.Process, s)
	}
	switch {
	case x.Error != nil && *x.Error != "":
		s += " (fails: " + *x.Error + ")"
	case x.Output != nil:
		s += " (with a certain output)"
	}
	return s
}

func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }

// counted is a number of things that were not.
func counted(n int, one string) string {
	if n == 1 {
		return "1 " + one + " was"
	}
	return fmt.Sprintf("%d %ss were", n, one)
}
