// Package supervise decides what a supervisor does about its children, after the supervisors of
// Erlang/OTP: in which order they are started and stopped, which are started again when one has ended,
// and when to give up. It takes facts and returns actions. It has no clock, starts nothing and knows no
// process.
package supervise

import (
	"math"
	"time"
)

// Strategy says which children are started again when one of them is.
type Strategy string

// The strategies.
const (
	OneForOne       Strategy = "one_for_one"        // that one
	OneForAll       Strategy = "one_for_all"        // all
	RestForOne      Strategy = "rest_for_one"       // that one and those that were started after it
	SimpleOneForOne Strategy = "simple_one_for_one" // that one; all are made at run time, of one template
)

// Restart says after which ends a child is started again.
type Restart string

// The restart types.
const (
	Permanent Restart = "permanent" // after every end
	Transient Restart = "transient" // after a failure
	Temporary Restart = "temporary" // never; it is forgotten when it ends or is stopped
)

// Values of Child.Shutdown that are no durations.
const (
	BrutalKill time.Duration = -1 // it is killed at once
	Infinity   time.Duration = -2 // it is never killed
)

// Backoff is how long a child is down before it is started again: Initial the first time, each further
// time Factor times as long, at most Max. It begins anew when the child has lived for longer than the
// period. The zero value is none.
type Backoff struct {
	Initial time.Duration
	Factor  float64       // 0 = 1: always Initial
	Max     time.Duration // 0 = no limit
}

// After returns the delay before the n-th start in a row, from 1.
func (b Backoff) After(n int) time.Duration {
	most := float64(b.Max)
	if b.Max == 0 {
		most = math.MaxInt64
	}
	factor := b.Factor
	if factor == 0 {
		factor = 1
	}
	d := min(float64(b.Initial)*math.Pow(factor, float64(n-1)), most)
	if !(d < math.MaxInt64) {
		return math.MaxInt64
	}
	return time.Duration(d)
}

// Child is what is decided by about one child.
type Child struct {
	Restart  Restart
	Shutdown time.Duration // from the request to end until it is killed; or BrutalKill, Infinity
	Backoff  Backoff
}

// Spec is what is decided by.
type Spec struct {
	Strategy    Strategy
	MaxRestarts int           // more than these within Period, and the supervisor gives up
	Period      time.Duration // a restart that is older does not count, nor does one that is delayed for so long
	Children    []Child       // in order of their start; SimpleOneForOne: the template and nothing else
}

// ID names a child: its place in Spec.Children or, of one that was added, a number that comes after
// all others. It is never used again.
type ID int

// Do says what is to be done.
type Do int

// The actions.
const (
	Wait   Do = iota // nothing, until there is a fact, or until Action.Until
	Start            // start a child, then tell Started or Failed
	Term             // ask a child to end; Exited follows
	Kill             // end a child; Exited follows
	Decide           // nothing: it was decided to start a child again, not before Action.Until
	End              // all children are down: the supervisor ends as Policy.Outcome says
)

var doNames = [...]string{"wait", "start", "term", "kill", "decide", "end"}

// String returns the name in lower case.
func (d Do) String() string { return doNames[d] }

// Action is one thing to do.
type Action struct {
	Do    Do
	Child ID
	Until time.Time // of Wait and Decide; zero = only a fact changes something, or no delay
	Count int       // of Decide: how many restarts there were within the period, this one included; 0 = it does not count
}

// Cause is why a supervisor ends.
type Cause int

// The causes.
const (
	Asked    Cause = iota + 1 // Stop was called
	GaveUp                    // more than MaxRestarts restarts within Period
	NotBegun                  // a child could not be started in the beginning
)

// Outcome is how a supervisor ends. The zero value says that it does not.
type Outcome struct {
	Cause Cause `json:"cause"`
	Child ID    `json:"child"` // of GaveUp and NotBegun: the one that was last
}

// State is what a child does.
type State int

// The states.
const (
	Down     State = iota // not started, or ended and not to be started alone
	Starting              // Start was returned
	Running               // it was started
	Stopping              // it was asked to end, or killed
	Ended                 // it has ended, and the turn of that fact has not come
	Delayed               // it will be started again
	Retrying              // it could not be started again, and the turn of that has not come
)

var stateNames = [...]string{"down", "starting", "running", "stopping", "ended", "delayed", "retrying"}

// String returns the name in lower case.
func (s State) String() string { return stateNames[s] }

// Status is what is known of one child.
type Status struct {
	ID       ID
	State    State
	Restarts int       // how often it was started again
	Due      time.Time // of Delayed: when
}
