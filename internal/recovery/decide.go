package recovery

import (
	"fmt"
	"strings"

	"rnix/internal/step"
	"rnix/types"
)

// Policy says what becomes of a call whose outcome nobody knows and that must not simply be run again.
type Policy string

// The policies.
const (
	Tell  Policy = "tell"  // the model is told that the outcome is unknown and must be checked; the default
	Retry Policy = "retry" // it is run again
	Skip  Policy = "skip"  // the model is told that it was not run and is not to be
	Fail  Policy = "fail"  // the process is not resumed
)

// ParsePolicy reads a policy; the empty text is Tell.
func ParsePolicy(text string) (Policy, error) {
	switch p := Policy(text); p {
	case "":
		return Tell, nil
	case Tell, Retry, Skip, Fail:
		return p, nil
	}
	return "", types.Errorf(types.ErrInvalid, "Resume", text, "not a way to treat calls in doubt; take tell, retry, skip or fail")
}

// Verdict is what is done with a call of an open step when its process goes on.
type Verdict string

// The verdicts.
const (
	Run      Verdict = "run"      // it was never begun, so it is run now
	Again    Verdict = "again"    // it may have run, which does no harm: it is run again
	Undo     Verdict = "undo"     // its files are put back as they were, then it is run again
	Attach   Verdict = "attach"   // the process that it was about to start is found again, or started
	Unknown  Verdict = "unknown"  // in doubt: the model is told
	Skipped  Verdict = "skipped"  // in doubt: not run, and the model is told so
	Refuse   Verdict = "refuse"   // in doubt: the process cannot be resumed with this policy
	Lost     Verdict = "lost"     // it has ended, but what it answered is lost
	Answered Verdict = "answered" // nothing is to be done
)

// Decide says what is done with a call. policy counts for calls in doubt only; restorable says that the
// call's files can be put back as they were before it. Pure.
func Decide(c *Call, policy Policy, restorable bool) Verdict {
	switch {
	case c.Answered:
		return Answered
	case c.Ended:
		return Lost
	case !c.Begun:
		return Run
	case c.Intent != nil && c.Intent.Child != nil:
		return Attach
	}
	if c.Intent != nil {
		switch c.Intent.Effect {
		case "none", "idempotent":
			return Again
		case "reversible":
			if restorable {
				return Undo
			}
		}
	}
	switch policy {
	case Retry:
		return Again
	case Skip:
		return Skipped
	case Fail:
		return Refuse
	}
	return Unknown
}

// Explain returns what the model is told instead of a result; empty for calls that are run.
func Explain(c *Call, v Verdict) string {
	switch v {
	case Unknown:
		return unknown(c)
	case Skipped:
		return "This call was interrupted: it may or may not have run. " + step.SkippedText + " Go on without it."
	case Lost:
		if c.Error != "" {
			return fmt.Sprintf("This call has ended with an error (%s): %s. What else it answered was lost when the machine stopped.", strings.ToLower(string(c.Code)), c.Error)
		}
		return "This call has run to its end, without an error. What it answered was lost when the machine stopped; look at its effect instead of running it again."
	}
	return ""
}

// unknown is what the model is told of a call in doubt.
func unknown(c *Call) string {
	if !c.Begun {
		return "This call was not run: the process was interrupted before it."
	}
	return "This call was interrupted and its outcome is unknown: it may have run in full, in part or not at all. It was not run again. Check what it did before you decide whether to repeat it."
}
