package compose

import (
	"fmt"
	"slices"
	"strings"

	"rnix/internal/step"
)

// given finds nodes that are given more results than an agent takes inputs, of the lists that the file has. Of the
// others it is known when they are there (CheckGiven).
func (c *checker) given() {
	count := map[string]int{}
	for _, name := range c.f.Plan().Order { // each behind those that it waits for
		n := c.f.Agents[name]
		all := 0
		var of []string
		for _, up := range n.Above() {
			all += count[up]
			if count[up] > 1 {
				of = append(of, fmt.Sprintf("%d of %s", count[up], up))
			}
		}
		if err := CheckGiven(all, of); err != nil {
			c.Problemf(c.key+"."+name+".depends_on", "%v", err)
		}
		switch f := n.ForEach; {
		case f == nil || f.Files != "" || f.From != "" && c.f.Agents[f.From].ForEach == nil:
			count[name] = 1 // at least
		case f.From != "": // once for each instance of that one
			count[name] = count[f.From]
		default:
			count[name] = max(len(f.Items), 1)
		}
	}
}

// CheckGiven refuses to give a node so many results. of says where most of them come from.
func CheckGiven(n int, of []string) error {
	if n <= step.MaxInputCount {
		return nil
	}
	from := ""
	if slices.Sort(of); len(of) > 0 {
		from = " (" + brief(strings.Join(of, ", ")) + ")"
	}
	return fmt.Errorf("it would be given %d results%s, and an agent takes at most %d inputs: put nodes between that each sum up a part", n, from, step.MaxInputCount)
}
