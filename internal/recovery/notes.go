package recovery

import (
	"encoding/json"
	"strings"

	"rnix/internal/step"
)

// noted keeps the latest note of a key; null takes it back.
func noted(notes map[string]json.RawMessage, m *step.Marker) map[string]json.RawMessage {
	if len(m.Detail) == 0 || string(m.Detail) == "null" {
		if delete(notes, m.Text); len(notes) == 0 {
			return nil
		}
		return notes
	}
	if notes == nil {
		notes = map[string]json.RawMessage{}
	}
	notes[m.Text] = m.Detail
	return notes
}

// FailedChild is how a parent lists a child that has failed, of the error of the call that started it.
func FailedChild(problem string) string {
	if _, rest, ok := strings.Cut(problem, "process "); ok {
		return "PID " + rest
	}
	return problem
}
