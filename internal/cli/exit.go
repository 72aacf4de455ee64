package cli

import (
	"errors"
	"fmt"
	"strings"

	"rnix/types"
)

// The exit codes of the program. They are part of its interface: scripts test for them.
const (
	ExitOK            = 0
	ExitError         = 1
	ExitUsage         = 2
	ExitAgentFailed   = 3
	ExitBudget        = 4
	ExitCancelled     = 5
	ExitBlocked       = 6
	ExitNoProgress    = 7
	ExitLostOwnership = 8
	ExitSuspended     = 9
	ExitNotFound      = 10
	ExitDenied        = 11
	ExitUnreachable   = 12
	ExitNoModel       = 13
	ExitRefused       = 14
	ExitTimeout       = 124
	ExitHangup        = 129
	ExitInterrupted   = 130
	ExitTerminated    = 143
)

// exitRow documents one exit code.
type exitRow struct {
	code    int
	text    string
	process string // the code of the process, where the program says how one ended
}

func exitTable() []exitRow {
	return []exitRow{
		{ExitOK, "done; an agent that was waited for completed its task", "0"},
		{ExitError, "an error that none of the codes below names", ""},
		{ExitUsage, "usage: an unknown command or flag, or a value that cannot be", ""},
		{ExitAgentFailed, "the agent failed: an error, or its step limit", "1"},
		{ExitBudget, "the agent's budget is used up", "2"},
		{ExitCancelled, "the agent was ended by a signal", "4"},
		{ExitBlocked, "a decision is needed, and no person can be asked (resume: calls in doubt)", "5"},
		{ExitNoProgress, "the agent repeated itself and was stopped", "6"},
		{ExitLostOwnership, "another owner took the agent's session", "3"},
		{ExitSuspended, "the agent is suspended on disk, not ended: the daemon stopped, or it was paused", ""},
		{ExitNotFound, "no such process, path or name, or several that match", ""},
		{ExitDenied, "permission denied; nothing was done", ""},
		{ExitUnreachable, "the daemon cannot be reached, does not start, or went away", ""},
		{ExitNoModel, "no model can be used: its provider is not set up, refuses the key, or does not have the model", "1"},
		{ExitRefused, "the agent ended after a call that was refused, and did nothing else", "7"},
		{ExitTimeout, "a time limit was reached: --timeout of run or wait", "1"},
		{ExitHangup, "the terminal was closed; the agent runs on", ""},
		{ExitInterrupted, "Ctrl+C", ""},
		{ExitTerminated, "SIGTERM; run passes it on to the agent", ""},
	}
}

func exitCodesHelp() string {
	var b strings.Builder
	b.WriteString(`Every command ends with one of the codes in the column "exit". A process has another code, in the column
"process": "exited(2)" in ps and wait, "exit_code" in --json, exit.code on the wire; the page says it in words.
Rnix run, wait, attach and chat turn it into the code beside it. A code of a process says nothing of a command,
and the other way round.

  exit  process  meaning
`)
	for _, r := range exitTable() {
		fmt.Fprintf(&b, "  %4d  %7s  %s\n", r.code, r.process, r.text)
	}
	return b.String()
}

// processExit returns the exit code of the program for an agent that ended so.
func processExit(e types.ExitStatus) int {
	switch e.Code {
	case types.ExitOK:
		return ExitOK
	case types.ExitBudget:
		return ExitBudget
	case types.ExitLostOwnership:
		return ExitLostOwnership
	case types.ExitCancelled:
		return ExitCancelled
	case types.ExitBlocked:
		return ExitBlocked
	case types.ExitNoProgress:
		return ExitNoProgress
	case types.ExitRefused:
		return ExitRefused
	}
	switch {
	case timedOut(e):
		return ExitTimeout
	case noModel(e.Err):
		return ExitNoModel
	}
	return ExitAgentFailed
}

// noModel reports whether an agent has ended because its provider refuses it, or does not have its model.
func noModel(err error) bool {
	code := types.CodeOf(err)
	return code == types.ErrAuth || code == types.ErrNotFound
}

// timedOut reports whether an agent was ended by the time limit of the whole process.
func timedOut(e types.ExitStatus) bool {
	_, ok := e.TimedOut()
	return ok
}

// exitError ends the program with a code. A nil err means that everything has been said.
type exitError struct {
	code int
	err  error
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// leave returns an error that only sets the exit code, or nil for 0.
func leave(code int) error {
	if code == ExitOK {
		return nil
	}
	return &exitError{code: code}
}

// unreachable marks an error of the connection to the daemon.
func unreachable(err error) error {
	if err == nil || types.CodeOf(err) == types.ErrPermission || types.CodeOf(err) == types.ErrInvalid {
		return err
	}
	return &exitError{ExitUnreachable, err}
}

// mended is an error with a second line that says what to do about it.
type mended struct {
	error
	mend string
}

func (m *mended) Unwrap() error { return m.error }

// withMend adds to err what to do about it.
func withMend(err error, mend string) error {
	if err == nil || mend == "" {
		return err
	}
	return &mended{err, mend}
}

// usagef makes an error of usage; mend may be empty.
func usagef(mend, format string, args ...any) error {
	return withMend(types.Errorf(types.ErrInvalid, "", "", format, args...), mend)
}

// asUsage makes an error of the argument parser ours that did not come from flagError.
func asUsage(err error) error {
	var s *types.SyscallError
	var x *exitError
	if errors.As(err, &s) || errors.As(err, &x) {
		return err
	}
	return usagef("", "%w", err)
}

// exitCode returns the exit code for an error.
func exitCode(err error) int {
	var x *exitError
	if err == nil {
		return ExitOK
	}
	if errors.As(err, &x) {
		return x.code
	}
	switch types.CodeOf(err) {
	case types.ErrInvalid:
		return ExitUsage
	case types.ErrNotFound, types.ErrAmbiguous:
		return ExitNotFound
	case types.ErrPermission:
		return ExitDenied
	case types.ErrInDoubt:
		return ExitBlocked
	case types.ErrAuth, types.ErrRateLimited:
		return ExitNoModel
	case types.ErrTimeout:
		return ExitTimeout
	case types.ErrUnavailable, types.ErrDisconnected:
		return unavailable(err)
	}
	return ExitError
}

// unavailable tells the daemon from the devices and the models, which may be unavailable too.
func unavailable(err error) int {
	var s *types.SyscallError
	switch errors.As(err, &s); {
	case s == nil:
		return ExitError
	case s.Syscall == "Provider":
		return ExitNoModel
	case s.Syscall == "", s.Syscall == "Connect", s.Syscall == "Ensure", strings.HasSuffix(s.Device, ".sock"):
		return ExitUnreachable
	}
	return ExitError
}

// errorText returns the text of an error for people, "" if there is nothing to say. It begins with the
// thing concerned; the operation is for programs, which find it in the fields of --json.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return strings.TrimSpace(withoutSyscall(err.Error(), err))
}

// withoutSyscall returns text, which begins with err's own, without the operation; the PID stays where nothing else names
// the thing concerned.
func withoutSyscall(text string, err error) string {
	var s *types.SyscallError
	if !errors.As(err, &s) || s.Syscall == "" {
		return text
	}
	rest, ok := strings.CutPrefix(text, s.Syscall)
	own := strings.HasPrefix(rest, ": "+s.Device+":") // the cause names it
	if s.Device != "" && ok && !own {
		rest, ok = strings.CutPrefix(rest, " "+s.Device)
	}
	if s.PID != 0 && ok {
		rest, _ = strings.CutPrefix(rest, fmt.Sprintf(" (pid %d)", s.PID))
	}
	if rest, ok = strings.CutPrefix(rest, ": "); !ok {
		return text
	}
	if s.Device != "" && !own {
		return s.Device + ": " + rest
	}
	if s.PID != 0 {
		return "PID " + s.PID.String() + ": " + rest
	}
	return rest
}
