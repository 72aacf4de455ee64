package types

import (
	"fmt"
	"strconv"
	"strings"
)

// ProcessState is where a process is in its life. The values are part of the wire format.
type ProcessState int

// The four states. "Suspended" is not one of them: it is what a Running process is called while
// its gate is shut, and what a paused history is called on disk.
const (
	StateCreated ProcessState = iota // allocated, reasoning not started
	StateRunning                     // the reasoning loop executes
	StateZombie                      // reasoning ended, resources not yet released
	StateDead                        // all resources released
)

var stateNames = [...]string{"created", "running", "zombie", "dead"}

// String returns the lower-case name of the state.
func (s ProcessState) String() string {
	if s < 0 || int(s) >= len(stateNames) {
		return fmt.Sprintf("state(%d)", int(s))
	}
	return stateNames[s]
}

// MarshalText writes the name.
func (s ProcessState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name written by MarshalText.
func (s *ProcessState) UnmarshalText(b []byte) error {
	for i, n := range stateNames {
		if n == string(b) {
			*s = ProcessState(i)
			return nil
		}
	}
	return fmt.Errorf("unknown process state %q", b)
}

// Process exit codes. Part of the wire format. The command line has a table of its own.
const (
	ExitOK            = 0 // completed
	ExitError         = 1 // an error, or the step limit
	ExitBudget        = 2 // budget_exceeded
	ExitLostOwnership = 3 // another owner took the session
	ExitCancelled     = 4 // cancelled by an operator
	ExitBlocked       = 5 // waits for a decision that nobody can give
	ExitNoProgress    = 6 // repeats itself
	ExitRefused       = 7 // refused: it has ended by itself, and did nothing after a call that was refused
)

// Exit reasons that callers test for.
const (
	ReasonCompleted       = "completed"
	ReasonRefused         = "refused"
	ReasonUnexpected      = "unexpected exit"
	ReasonMaxSteps        = "max steps exceeded"
	ReasonBudget          = "budget_exceeded"
	ReasonCancelledPaused = "context cancelled while paused"
	ReasonTimeout         = "timeout after " // and the time limit
)

// ExitStatus is how a process ended.
type ExitStatus struct {
	Code   int    // 0 = normal exit, otherwise one of the Exit constants
	Reason string // for people; one of the Reason constants or an error text
	Err    error  // the cause; nil on a normal exit
}

// String returns "code (reason)".
func (e ExitStatus) String() string { return strconv.Itoa(int(e.Code)) + " (" + e.Reason + ")" }

// Answered reports whether an agent has ended by itself: it was asked nothing any more, and its answer is the result.
func (e ExitStatus) Answered() bool { return e.Code == ExitOK || e.Code == ExitRefused }

// MaxSteps reports whether the limit of steps ended the process.
func (e ExitStatus) MaxSteps() bool {
	reason, _, _ := strings.Cut(e.Reason, ";") // what is told of its children follows
	return e.Code == ExitError && reason == ReasonMaxSteps
}

// TimedOut returns the time limit of the whole process that ended it, and false if something else did.
func (e ExitStatus) TimedOut() (limit string, ok bool) {
	limit, ok = strings.CutPrefix(e.Reason, ReasonTimeout)
	limit, _, _ = strings.Cut(limit, ";") // what is told of its children follows
	return limit, ok && e.Code == ExitError
}
