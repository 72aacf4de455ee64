package event

import "fmt"

// lagText is how a line of kind Lag says which events are missing before it. Part of the on-disk format: Missing
// reads it.
const lagText = "events %d to %d may be missing here, as far as they belong to this process"

// Missing returns which events an event of kind Lag says are missing, at most; false if it does not say that.
func Missing(e *Event) (from, to uint64, ok bool) {
	if e.Kind != Lag {
		return 0, 0, false
	}
	n, err := fmt.Sscanf(e.Text, lagText, &from, &to)
	return from, to, n == 2 && err == nil && from <= to
}
