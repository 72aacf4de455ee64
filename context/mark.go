package context

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
)

// Mark returns a word that stands in none of the texts, to stand around them: none can end its own block or begin another's. It depends on the texts alone, so that
// the same ones make the same prompt.
func Mark(texts ...string) string {
	sum := sha256.New()
	for _, s := range texts {
		fmt.Fprintf(sum, "%d\n%s", len(s), s)
	}
	for {
		mark := hex.EncodeToString(sum.Sum(nil)[:8])
		if !slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, mark) }) {
			return mark
		}
		sum.Write([]byte(mark))
	}
}
