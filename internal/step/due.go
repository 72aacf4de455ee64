package step

import (
	"time"

	"rnix/types"
)

// Due returns the suspended histories that can go on by themselves at a time.
func (x *Index) Due(now time.Time) []ProcInfo {
	x.mu.Lock()
	defer x.mu.Unlock()
	var out []ProcInfo
	for _, p := range x.infos {
		if p.sleeps() && !now.Before(p.WakeAt) {
			out = append(out, p)
		}
	}
	return out
}

// Sleeps reports whether a suspended history is to go on by itself at some time.
func (x *Index) Sleeps() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, p := range x.infos {
		if p.sleeps() {
			return true
		}
	}
	return false
}

// sleeps reports whether a history is suspended until a time. What a person has paused meanwhile waits for the person.
func (i *ProcInfo) sleeps() bool {
	return i.Suspended && !i.WakeAt.IsZero() && i.Why() != types.SuspendPaused
}
