package step

import (
	"strconv"
	"strings"

	"rnix/types"
)

// FailureKind says in one word how a call failed. Part of the wire format.
type FailureKind = types.FailureKind

// The kinds.
const (
	FailedExit    FailureKind = "exit_code"  // a command ended by itself, and not with 0
	FailedSignal  FailureKind = "signal"     // a signal ended the command
	FailedTimeout FailureKind = "timeout"    // the command, or the call, took too long
	FailedRefused FailureKind = "refused"    // the process may not do that
	FailedTool    FailureKind = "tool_error" // the tool of a server says itself that it failed
	FailedAborted FailureKind = "aborted"    // the process, the daemon or a person ended it
	FailedCall    FailureKind = "error"      // everything else; its code says more
)

// Failure is how a call failed. The zero value: it did not.
type Failure struct {
	Kind FailureKind
	// Exit is the exit code of a command that ended by itself or by a signal; nil = there is none, or nobody knows it.
	Exit *int
	// Text says it in a few words: exit 1, killed by SIGSEGV, timed out after 5 s; or the error.
	Text string
	// Answered says that the call was made as it should be, and only what it ran went wrong: a command that ended with an
	// exit code. That is the agent's to judge (grep finds nothing, and ends with 1), and makes neither a step nor a
	// process fail.
	Answered bool
}

const timedOut = "timed out after "

// FailureOf says how a call on a path failed, if it did. output is what it answered, or the end of that; problem and code
// are those of its error, if it had one. It is the only place that decides this.
func FailureOf(path, output, problem string, code types.ErrCode) Failure {
	if problem == "" && code == "" {
		if under(path, "/dev/shell") {
			return commandFailure(output)
		}
		return Failure{}
	}
	f := Failure{Kind: FailedCall, Text: problem}
	switch {
	case code == types.ErrTimeout:
		f.Kind = FailedTimeout
	case code == types.ErrPermission:
		f.Kind = FailedRefused
	case code == types.ErrCancelled:
		f.Kind = FailedAborted
	case code == types.ErrDriver && under(path, "/mnt/mcp"):
		f.Kind = FailedTool
	}
	return f
}

func under(path, root string) bool {
	rest, ok := strings.CutPrefix(path, root)
	return ok && (rest == "" || rest[0] == '/')
}

// commandFailure reads how a command ended from the last line of what the shell has answered: [exit code 1, 0.2 s],
// [exit code 137: killed by SIGKILL, 0.2 s], [timed out after 5 s; killed], [exit code unknown: why, 0.2 s].
func commandFailure(output string) Failure {
	output = strings.TrimRight(output, "\n")
	line, ok := strings.CutPrefix(output[strings.LastIndexByte(output, '\n')+1:], "[")
	if line, ok = cutEnd(line, "]", ok); !ok {
		return Failure{}
	}
	if text, late := strings.CutSuffix(line, "; killed"); late && strings.HasPrefix(text, timedOut) {
		return Failure{Kind: FailedTimeout, Text: text, Answered: true}
	}
	line, ok = strings.CutPrefix(line, "exit code ")
	if line, ok = cutEnd(line, " s", ok); !ok {
		return Failure{}
	}
	line = line[:max(strings.LastIndexByte(line, ','), 0)] // what it took
	number, how, signalled := strings.Cut(line, ": ")
	if why, ok := strings.CutPrefix(line, "unknown: "); ok {
		return Failure{Kind: FailedCall, Text: "exit code unknown: " + why, Answered: true}
	}
	n, err := strconv.Atoi(number)
	switch {
	case err != nil:
		return Failure{}
	case signalled:
		return Failure{Kind: FailedSignal, Exit: &n, Text: how, Answered: true}
	case n != 0:
		return Failure{Kind: FailedExit, Exit: &n, Text: "exit " + number, Answered: true}
	}
	return Failure{}
}

func cutEnd(s, end string, ok bool) (string, bool) {
	if !ok {
		return "", false
	}
	return strings.CutSuffix(s, end)
}

// FailedCalls returns how many of calls failed: those with an error, and commands that did not end with exit code 0.
func FailedCalls(calls []Call) int {
	n := 0
	for i := range calls {
		if c := &calls[i]; FailureOf(c.Path, c.Result, c.Error, c.Code).Kind != "" {
			n++
		}
	}
	return n
}

// OwnFailed returns how many calls of a process failed, without those that a fork has of its origin. known is false if there may be more: an earlier
// version has written its last run.
func (p *ProcInfo) OwnFailed() (n int, known bool) {
	switch {
	case p.FailedCounted:
		return p.FailedCalls - p.FailedTaken, true
	case p.Kind != "" || p.Step == 0: // there were no calls
		return 0, true
	case p.OriginUUID != (types.UUID{}): // how many of them are its own is not known
		return 0, false
	}
	return p.FailedCalls, false
}

// failed returns how many calls of a step failed. A record of an earlier version only says it of those with an error.
func (r *StepRecord) failed() int {
	if r.FailedCalls > 0 {
		return r.FailedCalls
	}
	n := 0
	for i := range r.ToolCalls {
		if r.ToolCalls[i].Error != "" {
			n++
		}
	}
	return n
}

// ShowFailures fills in how the commands of steps failed.
func ShowFailures(steps []StepRecord) {
	for i := range steps {
		for j := range steps[i].ToolCalls {
			c := &steps[i].ToolCalls[j]
			if f := FailureOf(c.Path, c.Result, c.Error, c.Code); f.Answered {
				c.Failure = f.Text
			}
		}
	}
}
