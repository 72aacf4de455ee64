package agent

import (
	"errors"
	"strings"
)

// Lookup returns the value of an environment variable, and whether it is set.
type Lookup func(name string) (string, bool)

// Expand replaces ${NAME} by the variable's value and ${NAME:-default} by the default if the
// variable is not set or empty. Values are not expanded again, and a "$" before anything else stands
// for itself. The error names every variable that is missing.
func Expand(s string, lookup Lookup) (string, error) {
	var b strings.Builder
	var bad []string
	for {
		before, rest, found := strings.Cut(s, "${")
		b.WriteString(before)
		if !found {
			break
		}
		inner, after, closed := strings.Cut(rest, "}")
		if !closed {
			return "", errors.New("${ without }")
		}
		s = after
		name, otherwise, hasDefault := strings.Cut(inner, ":-")
		if !envPattern().MatchString(name) {
			bad = append(bad, "${"+inner+"} is not the name of a variable")
			continue
		}
		v, ok := "", false
		if lookup != nil {
			v, ok = lookup(name)
		}
		switch {
		case hasDefault && v == "":
			b.WriteString(otherwise)
		case ok:
			b.WriteString(v)
		default:
			bad = append(bad, "the variable "+name+" is not set; set it, or write ${"+name+":-default}")
		}
	}
	if len(bad) > 0 {
		return "", errors.New(strings.Join(bad, "; "))
	}
	return b.String(), nil
}
