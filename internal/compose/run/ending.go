package run

import (
	"encoding/json"

	"rnix/internal/compose"
	"rnix/types"
)

// ReasonEnded is the exit reason of a node that was suspended when its run was ended.
const ReasonEnded = "terminated: its run was ended"

// endingKey is the key of the note that a run is ending; no node can have this name. Part of the on-disk format.
const endingKey = "!ending"

// Ending is the note that a run is about to end its nodes, and itself with an exit status. It is durable before
// the first node hears of it: from then on nodes that end so have not failed by themselves, and a daemon that
// finds the note brings it to its end. A later round of the run makes it void. Part of the on-disk format.
type Ending struct {
	Round int              `json:"round,omitempty"`
	Exit  types.ExitStatus `json:"exit"`
}

// EndingIn finds the note in those of a history, of a run with so many rounds after the first. What cannot be
// read counts for nothing.
func EndingIn(notes map[string]json.RawMessage, rounds int) (Ending, bool) {
	var e Ending
	raw, ok := notes[endingKey]
	if !ok || compose.Unmarshal(raw, &e) != nil || e.Round != rounds {
		return Ending{}, false
	}
	return e, true
}
