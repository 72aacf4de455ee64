package ipc

import (
	"time"

	"rnix/types"
)

// The methods of who watches.
var (
	WatchProcs = Method[WatchRequest, ProcTable]{Name: "watch_procs", Doc: "watch_procs streams the table of processes: all of it first, then the rows that change", Stream: true}
)

// How often a watcher is told, in milliseconds.
const (
	WatchEvery    = 100   // at most one frame in this time where the request does not say
	MinWatchEvery = 33    // the least that a request may say
	MaxWatchEvery = 60000 // the most
)

// WatchRequest says which rows are watched. Requests that are equal share their frames.
type WatchRequest struct {
	All     bool `json:"all,omitempty"`      // also those that have ended, and archived ones
	Limit   int  `json:"limit,omitempty"`    // of stored ones, newest; 0 = all
	EveryMs int  `json:"every_ms,omitempty"` // at most one frame in so many ms; 0 = 100; 33 to 60000
}

// resumeAfter implements resumer: whoever comes back gets everything again.
func (r *WatchRequest) resumeAfter(uint64) {}

// ProcTable is a frame of watch_procs. Folded one upon the other (forget everything if Whole, take the rows of Procs, by UUID,
// drop those of Gone), frames are the table as it was at Seq. What happens and changes no row makes at most one
// frame a second, without rows; if nothing happens, there is none.
//
// Time alone changes no row: ElapsedMs of a row that runs, which is one whose State is created or running and that is not ClockPaused, goes on from
// At of the frame that brought the row, and ages are counted from Doing.Since, WaitSince and PausedAt.
type ProcTable struct {
	Seq    uint64       `json:"seq"`   // position in the event log: all up to it is in the rows, later things may be
	At     time.Time    `json:"at"`    // the daemon's clock when the rows were read
	Whole  bool         `json:"whole"` // Procs is everything: forget what you had; the first frame, and the one after a gap
	Procs  []Proc       `json:"procs"` // new or changed rows; of a whole frame in order of PID
	Gone   []types.UUID `json:"gone,omitempty"`
	Hidden int          `json:"hidden,omitempty"` // stored ones cut by Limit
	Totals Totals       `json:"totals"`
}

// Totals sums up what is alive or suspended, whatever of it is shown. Each process counts in one of the first four, or in none.
type Totals struct {
	Running   int     `json:"running"`   // created ones included, and what waits for another process, a message or a time
	Suspended int     `json:"suspended"` // in memory or on disk, for whatever reason: paused, for its budget, ...
	Waiting   int     `json:"waiting"`   // alive, and waits for the answer of a person, a rate limit, a quota or a budget
	Failed    int     `json:"failed"`    // have ended without success, and their parent has not asked how yet; ListResponse.Ended counts all
	Tokens    int     `json:"tokens"`
	CostUSD   float64 `json:"cost_usd"`
	Unpriced  int     `json:"unpriced_tokens,omitempty"` // of which nobody knows what they cost; they are not in CostUSD
}

// Doing is the call that a process has in hand: the oldest, if there are several.
type Doing struct {
	Tool  string    `json:"tool"`           // empty = its model is asked
	Path  string    `json:"path,omitempty"` // of the device
	Since time.Time `json:"since"`
	Step  int       `json:"step"`
	Calls int       `json:"calls"` // how many there are side by side
}
