package step

import (
	"encoding/json"

	"rnix/types"
)

// CutOffMarker returns the record of a request to a model that was sent and has no answer: a says what it may have
// taken. What JSON cannot hold, such as a cost that is no number, is INVALID.
func CutOffMarker(pid types.PID, a *Answer) (Marker, error) {
	return spendingMarker(MarkerCutOff, pid, a)
}

// CutOff returns what a request may have taken that has no answer; false if m is about something else. It counts
// beside the answers, also if the same step has one later.
func CutOff(m *Marker) (*Answer, bool) { return spendingOf(MarkerCutOff, m) }

// MeteredMarker returns the record of a request to a model that a program of the process has made, past the loop of the process: a says what it has
// taken, and during which step. INVALID as of CutOffMarker.
func MeteredMarker(pid types.PID, a *Answer) (Marker, error) {
	return spendingMarker(MarkerMetered, pid, a)
}

// Metered returns what a request of a program of the process has taken; false if m is about something else. The answers of the process, which show
// the same tokens, do not count beside it (Answer.Metered).
func Metered(m *Marker) (*Answer, bool) { return spendingOf(MarkerMetered, m) }

func spendingMarker(name string, pid types.PID, a *Answer) (Marker, error) {
	detail, err := json.Marshal(a)
	if err != nil {
		return Marker{}, types.Errorf(types.ErrInvalid, "Encode", "", "%s: %w", name, err)
	}
	return Marker{Name: name, PID: pid, Detail: detail}, nil
}

func spendingOf(name string, m *Marker) (*Answer, bool) {
	a := new(Answer)
	if m.Name != name || json.Unmarshal(m.Detail, a) != nil {
		return nil, false
	}
	return a, true
}
