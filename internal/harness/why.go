package harness

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"rnix/agent"
	"rnix/types"
)

// Why a session did not succeed: the Subtype of a ResultEvent, the Code of an ErrorEvent. A word that is
// not here is the command line's own.
const (
	WhyTurns       = "max_turns"
	WhyBudget      = "max_budget"
	WhyInterrupted = "interrupted"
	WhyAuth        = "auth"
	WhyRateLimited = "rate_limited"
	WhyUnavailable = "unavailable"
	WhyInvalid     = "invalid"
	WhyNoSession   = "no_session"      // what was to be resumed is not there
	WhyFailed      = "failed"          // and nobody says more
	WhyNoResult    = "spawn_no_result" // the program ended without a result
	WhyBadExit     = "spawn_bad_exit"  // a good result, and then a bad end
)

var codes = map[string]types.ErrCode{
	WhyTurns: types.ErrExhausted, WhyBudget: types.ErrExhausted, WhyInterrupted: types.ErrCancelled,
	WhyAuth: types.ErrAuth, WhyRateLimited: types.ErrRateLimited, WhyUnavailable: types.ErrUnavailable,
	WhyInvalid: types.ErrInvalid, WhyNoSession: types.ErrNotFound,
}

// CodeOf returns the code of a terminal event that is a failure, DRIVER if nothing better is known. It is
// empty for a success, and for events that end nothing.
func CodeOf(e agent.Event) types.ErrCode {
	why := ""
	switch e := e.(type) {
	case agent.ResultEvent:
		if e.Success {
			return ""
		}
		why = e.Subtype
	case agent.ErrorEvent:
		why = e.Code
	default:
		return ""
	}
	if c, ok := codes[why]; ok {
		return c
	}
	return types.ErrDriver
}

// whyOf is the word for a code.
func whyOf(c types.ErrCode) string {
	switch c {
	case types.ErrAuth:
		return WhyAuth
	case types.ErrRateLimited:
		return WhyRateLimited
	case types.ErrUnavailable, types.ErrTimeout:
		return WhyUnavailable
	case types.ErrInvalid:
		return WhyInvalid
	}
	return WhyFailed
}

// stderrTail is how much of standard error is shown, in bytes.
const stderrTail = 1000

// noResult is the event for a program that ended without a result.
func noResult(name string, exit Exit) agent.Event {
	text := name + " ended without a result" + how(exit)
	if t := tail(exit.Stderr, stderrTail); t != "" {
		text += "; it wrote: " + t
	}
	why := WhyNoResult
	if noSession(exit.Stderr) {
		why = WhyNoSession
	}
	return agent.ErrorEvent{Code: why, Message: text}
}

// badExit is the event for a program that failed after a good result, or nil if it did not.
func badExit(name string, exit Exit) agent.Event {
	if exit.Stopped || exit.Code == 0 && exit.Signal == 0 {
		return nil
	}
	text := name + " failed after its result" + how(exit)
	if t := tail(exit.Stderr, stderrTail); t != "" {
		text += "; it wrote: " + t
	}
	return agent.ErrorEvent{Code: WhyBadExit, Message: text}
}

func how(e Exit) string {
	switch {
	case e.Signal != 0:
		return fmt.Sprintf(" (signal %d)", e.Signal)
	case e.Code != 0:
		return fmt.Sprintf(" (exit code %d)", e.Code)
	}
	return ""
}

// noSession reports whether a text says that there is no session to resume.
func noSession(text string) bool {
	text = strings.ToLower(text)
	for _, s := range []string{"no conversation found with session id", "no rollout found for thread id", "session not found"} {
		if strings.Contains(text, s) {
			return true
		}
	}
	return false
}

// tail returns the end of a text, at most n bytes of it, in valid UTF-8.
func tail(s string, n int) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= n {
		return s
	}
	s = s[len(s)-n:]
	for len(s) > 0 && !utf8.RuneStart(s[0]) {
		s = s[1:]
	}
	return "..." + s
}

// head returns the beginning of a text, at most n bytes of it, in valid UTF-8.
func head(s string, n int) string {
	s = strings.TrimSpace(strings.ToValidUTF8(s, "\uFFFD"))
	if len(s) <= n {
		return s
	}
	s = s[:n]
	for len(s) > 0 {
		if r, size := utf8.DecodeLastRuneInString(s); r != utf8.RuneError || size > 1 {
			break
		}
		s = s[:len(s)-1]
	}
	return s + "..."
}

// unreadable is the event for a line that is not what it should be.
func unreadable(b []byte) agent.Event {
	const shown = 300
	if len(b) > 4*shown {
		b = b[:4*shown]
	}
	return agent.SystemEvent{Subtype: "unreadable", Message: head(string(b), shown)}
}

// SystemHeard is the Subtype of a SystemEvent that says that the agent has taken in what a person said:
// the prompt, or a text of Steer. Its Message is that text.
const SystemHeard = "heard"

// SystemTurn is the Subtype of a SystemEvent that says that another turn begins.
const SystemTurn = "turn"

// SystemBeside is the Subtype of a SystemEvent that says which subagents work on when a turn ends: Message has their descriptions, and is empty if there are
// none any more. Another turn begins then.
const SystemBeside = "beside"

// ordinal says which attempt one is.
func ordinal(n, of int) string {
	if n <= 0 {
		return ""
	}
	if of <= 0 {
		return fmt.Sprintf("(attempt %d)", n)
	}
	return fmt.Sprintf("(attempt %d of %d)", n, of)
}
