package testenv

import "time"

// Within reports whether ok becomes true in a time, and returns soon after it does. It is for what sends no event. It looks fifty times a second, but
// less often where a look takes long, as one that starts a program does: it waits three times as long as it looks, so that looking
// never takes the processor that what is waited for needs.
func Within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; {
		begun := time.Now()
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(min(max(20*time.Millisecond, 3*time.Since(begun)), time.Second))
	}
}
