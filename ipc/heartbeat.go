package ipc

import (
	"time"

	"rnix/types"
)

// Heartbeat is the method of the heartbeat.
var Heartbeat = Method[HeartbeatRequest, HeartbeatResponse]{Name: "heartbeat", Doc: "heartbeat lists the processes that run, and which of them make no progress"}

// HeartbeatRequest asks about all processes, or about one and its descendants.
type HeartbeatRequest struct {
	Target string `json:"target,omitempty"`
}

// HeartbeatResponse is what the heartbeat knows, in order of PID, and how it is set up.
type HeartbeatResponse struct {
	Enabled     bool          `json:"enabled"`
	Policy      string        `json:"policy"` // warn, restart, kill
	Stall       time.Duration `json:"stall_ns"`
	Interval    time.Duration `json:"interval_ns"`
	MaxRestarts int           `json:"max_restarts"`
	Naps        int           `json:"naps"` // how often the host has slept since the daemon started
	Beats       []Beat        `json:"beats"`
}

// Beat is what the heartbeat knows of one process.
type Beat struct {
	PID     types.PID     `json:"pid"`
	UUID    types.UUID    `json:"uuid"`
	Name    string        `json:"name,omitempty"`
	Step    int           `json:"step"`
	Age     time.Duration `json:"age_ns"`           // since its last progress
	Limit   time.Duration `json:"limit_ns"`         // 0 = none
	Verdict string        `json:"verdict"`          // ok, exempt, suspect
	Exempt  string        `json:"exempt,omitempty"` // why it need not make progress
	Suspect time.Time     `json:"suspect_since,omitzero"`
	Policy  string        `json:"policy"`
}
