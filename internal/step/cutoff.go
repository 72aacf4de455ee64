package step

import (
	"encoding/json"

	"rnix/types"
)

// CutOffMarker returns the record of a request to a model that was sent and has no answer: a says what it may have
// taken. What JSON cannot hold, such as a cost that is no number, is INVALID.
func CutOffMarker(pid types.PID, a *Answer) (Marker, error) {
	detail, err := json.Marshal(a)
	if err != nil {
		return Marker{}, types.Errorf(types.ErrInvalid, "Encode", "", "cut_off: %w", err)
	}
	return Marker{Name: MarkerCutOff, PID: pid, Detail: detail}, nil
}

// CutOff returns what a request may have taken that has no answer; false if m is about something else. It counts
// beside the answers, also if the same step has one later.
func CutOff(m *Marker) (*Answer, bool) {
	a := new(Answer)
	if m.Name != MarkerCutOff || json.Unmarshal(m.Detail, a) != nil {
		return nil, false
	}
	return a, true
}
