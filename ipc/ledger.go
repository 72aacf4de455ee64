package ipc

import (
	"time"

	"rnix/types"
)

// LedgerRequest asks for the calls of a process.
type LedgerRequest struct {
	Target  string `json:"target"`             // a PID, a UUID or a prefix of one, or a name
	InDoubt bool   `json:"in_doubt,omitempty"` // only those whose outcome nobody knows
}

// LedgerResponse is every attempt of every call, in the order in which they were asked for. Counts is
// of all of them, also where only those in doubt were asked for.
type LedgerResponse struct {
	PID    types.PID                   `json:"pid"`
	UUID   types.UUID                  `json:"uuid"`
	Calls  []LedgerEntry               `json:"calls"`
	Counts map[types.LedgerVerdict]int `json:"counts"`
	// OriginUUID is what a fork was made from: the calls up to OriginStep are those of the origin.
	OriginUUID types.UUID `json:"origin_uuid,omitzero"`
	OriginStep int        `json:"origin_step,omitempty"`
	Damage     string     `json:"damage,omitempty"` // where the history could not be read any further, and why
}

// LedgerEntry is one attempt of one call. A call that was cut off and begun again has an entry for each
// time, so that the history of an effect can be read from top to bottom.
type LedgerEntry struct {
	Step    int                 `json:"step"`
	Run     int                 `json:"run"` // which run of the history began it, or asked for it, from 1
	CallID  string              `json:"call_id"`
	Attempt int                 `json:"attempt"` // from 1; 0 = not begun
	Tool    string              `json:"tool"`
	Path    string              `json:"path,omitempty"`
	Effect  string              `json:"effect,omitempty"`
	Key     string              `json:"key,omitempty"`
	Child   *types.UUID         `json:"child,omitempty"` // the process that it starts
	Began   time.Time           `json:"began,omitzero"`
	Ended   time.Time           `json:"ended,omitzero"` // when the end was recorded: of calls side by side, when the last had ended
	Took    time.Duration       `json:"duration_ns,omitempty"`
	Verdict types.LedgerVerdict `json:"verdict"`
	Result  string              `json:"result,omitempty"` // first line of what the model was told, bounded
	Error   string              `json:"error,omitempty"`  // first line, bounded
	Code    types.ErrCode       `json:"code,omitempty"`
}
