package loop

import (
	"cmp"
	"fmt"
	"hash/maphash"
)

// The thresholds are generous on purpose: polling for something slow with the same call and the same
// answer is honest work.
const (
	repeatNote = 10 // after so many equal steps the model is told
	repeatStop = 60 // after so many the process ends with ExitNoProgress
	failStop   = 40 // after so many steps in a row in which every call failed, likewise; see Config.FailStop
)

// repeats counts steps that bring nothing new: the same calls with the same answers, and steps in
// which every call failed.
type repeats struct {
	last        uint64
	same, fails int
	most        int // fails at which the process ends; 0 = failStop, negative = never
}

var seed = maphash.MakeSeed()

// see takes the calls of a step and their answers. It returns a note for the model, or a reason to
// stop.
func (r *repeats) see(actions []Action, outs []Outcome) (note, stop string) {
	var h maphash.Hash
	h.SetSeed(seed)
	failed := 0
	for i := range actions {
		for _, s := range []string{actions[i].Call.Name, string(actions[i].Call.Input), outs[i].Output} {
			_, _ = h.WriteString(s) // cannot fail
			_ = h.WriteByte(0)
		}
		if outs[i].Err != nil {
			failed++
		}
	}
	if sum := h.Sum64(); sum == r.last {
		r.same++
	} else {
		r.last, r.same = sum, 1
	}
	if failed == len(actions) {
		r.fails++
	} else {
		r.fails = 0
	}
	switch {
	case r.same >= repeatStop:
		return "", fmt.Sprintf("no progress: the same calls gave the same answers %d times in a row", r.same)
	case r.most >= 0 && r.fails >= cmp.Or(r.most, failStop):
		return "", fmt.Sprintf("no progress: every call failed in %d steps in a row", r.fails)
	case r.same == repeatNote:
		return fmt.Sprintf("[The same calls have given the same answers %d times in a row. If you are waiting for something, wait longer between looks; otherwise try another way or finish.]", r.same), ""
	}
	return "", ""
}
