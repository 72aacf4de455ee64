package testenv

import "time"

// Within reports whether ok becomes true in a time, and returns as soon as it does. It is for what sends no event: it looks fifty times a second,
// because looking without a pause takes the processor that what is waited for needs.
func Within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); !ok(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			return false
		}
	}
	return true
}
