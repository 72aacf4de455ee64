package mcpserve

import (
	"fmt"
	"unicode/utf8"
)

// Bounds of what a tool returns, in bytes: a model reads it.
const (
	maxResult = 256 << 10 // of a result; all of it is in the resource
	maxIntent = 400       // of an intent in a list
	maxDiff   = 128 << 10
)

// cut returns the first n bytes of a text, at most, without half a character, and how many bytes more there are.
func cut(s string, n int) (string, int) {
	if len(s) <= n {
		return s, 0
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n], len(s) - n
}

// short is a text with a mark where it was cut.
func short(s string, n int) string {
	s, more := cut(s, n)
	if more > 0 {
		s += "…"
	}
	return s
}

// omitted says how much is not shown, and where it is.
func omitted(bytes int, where string) string {
	return fmt.Sprintf("\n[%d bytes more: %s]", bytes, where)
}
