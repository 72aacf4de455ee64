package testenv

import "time"

// Within reports whether ok becomes true in a time, and returns soon after it does. It is for what sends no event. It looks twenty times a second, but
// less often where a look takes long, as one that starts a program does: it waits eight times as long as it looks, so that looking
// takes little of the processor that what is waited for needs.
func Within(limit time.Duration, ok func() bool) bool {
	for end := time.Now().Add(limit); ; {
		begun := time.Now()
		if ok() {
			return true
		}
		if time.Now().After(end) {
			return false
		}
		time.Sleep(min(max(50*time.Millisecond, 8*time.Since(begun)), time.Second))
	}
}
