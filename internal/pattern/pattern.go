// Package pattern makes regular expressions that are compiled when they are first used, not when the
// program starts: a client that only lists processes links them all and needs none.
package pattern

import (
	"regexp"
	"sync"
)

// New returns a function that returns the compiled expression. It panics at its first call if expr is
// not a regular expression, as regexp.MustCompile does; a test that uses the expression finds that.
func New(expr string) func() *regexp.Regexp {
	return sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(expr) })
}
