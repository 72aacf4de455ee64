package tui

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"rnix/debug"
	"rnix/internal/price"
	"rnix/internal/sandbox"
	"rnix/ipc"
	"rnix/types"
)

// What is shown of a process, as clean text. The same words as those of ps.

// badge is a sign for what a process does, in two or four cells, with its style.
func (t *Theme) badge(p *row) (string, style) {
	switch {
	case p.paused():
		return t.pick("⏸ ", "[P] "), yellow
	case p.State == stateSuspended:
		return t.pick("◼ ", "[S] "), yellow
	case failed(p):
		return t.pick("✗ ", "[F] "), red
	case p.ended() && p.FailedCalls > 0:
		return t.pick("✓!", "[D]!"), yellow
	case p.ended():
		return t.pick("✓ ", "[D] "), dim
	case p.waitsForAnswer():
		return t.pick("? ", "[?] "), yellow
	case !p.Suspect.IsZero():
		return t.pick("! ", "[!] "), yellow
	case p.waits():
		return t.pick("◌ ", "[W] "), plain
	}
	return t.pick("● ", "[R] "), green
}

// badgeWord is the badge in words.
func badgeWord(p *row) string {
	switch {
	case p.paused():
		return "paused"
	case p.State == stateDead && failed(p):
		return "failed"
	case p.State == stateDead && p.Exit != nil:
		return "ended"
	}
	return p.State
}

// waiting says what a process waits for, why it is suspended, or how it ended; empty = nothing of that.
func waiting(p *row, now time.Time) string {
	switch {
	case p.Exit != nil && (p.State != stateSuspended || p.Wait == ""):
		text := fmt.Sprintf("exited(%d)", p.Exit.Code) + with(": ", p.Exit.Reason)
		if !failed(p) { // else there is little room, and nobody takes it for a success
			text += with(", ", failedCalls(p.FailedCalls))
		}
		return text
	case p.Wait == "":
		return ""
	case p.WaitUntil.IsZero():
		return p.Wait
	}
	return p.Wait + " until " + clock(p.WaitUntil, now)
}

// failedCalls is how many calls of a process failed; empty = none.
func failedCalls(n int) string {
	if n == 0 {
		return ""
	}
	return plural(n, "failed call", "failed calls")
}

// stateText is the column STATE: the wait reason where there is one.
func (t *Theme) stateText(p *row, now time.Time) string {
	word := badgeWord(p)
	switch w := t.line(waiting(p, now)); {
	case p.paused() || w == "":
	case p.waitsForAnswer():
		return w // ask: what
	case p.waits():
		return "waits: " + w
	case p.State == stateSuspended || failed(p):
		return word + ": " + w
	case p.State == stateDead:
		return word + with(": ", failedCalls(p.FailedCalls))
	}
	return word
}

// waits reports whether a running process waits for something that is no call in hand.
func (p *row) waits() bool {
	switch d := p.Doing; {
	case p.State != stateRunning || p.Wait == "":
		return false
	case !p.WaitUntil.IsZero() || d == nil:
		return true
	default:
		return !p.inHand()
	}
}

// stateLong is the state with all that is known of why.
func stateLong(t *Theme, p *row, now time.Time) string {
	word, why := badgeWord(p), t.line(waiting(p, now))
	if why == word {
		return word
	}
	return word + with(": ", why)
}

// doingText is the age of the call in hand, and its tool or the model.
func (t *Theme) doingText(p *row, now time.Time) string {
	d := p.Doing
	if d == nil || p.ended() {
		return ""
	}
	what := t.line(d.Tool)
	switch {
	case d.Tool == "":
		what = "model"
	case p.inHand():
		what = t.line(p.Wait)
	}
	if d.Calls > 1 {
		what += fmt.Sprintf(" (+%d)", d.Calls-1)
	}
	if p.paused() {
		now = p.PausedAt
	}
	return debug.Age(now.Sub(d.Since)) + " " + what
}

// inHand reports whether what a process waits for is its call in hand, which is then told with what it is about.
func (p *row) inHand() bool {
	d := p.Doing
	return d != nil && (p.Wait == "model" || d.Tool != "" && strings.HasPrefix(p.Wait, d.Tool) || p.Wait == d.Path)
}

func (t *Theme) modelName(p *ipc.Proc) string {
	if p.Model == "" {
		return t.line(p.Provider)
	}
	return t.line(p.Provider + "/" + p.Model)
}

// name is what a process is called, on one line: its name and what it is to do.
func (t *Theme) name(p *row) string {
	s := t.line(p.Task())
	if p.Kind != "" {
		s = t.line(p.Agent + " " + p.Intent)
	}
	if p.Name != "" {
		s = t.line(p.Name) + with(": ", s)
	}
	if p.Sandbox == string(sandbox.LevelOff) && p.Kind == "" { // its commands are not confined
		s = "[sandbox off] " + s
	}
	return s
}

func stepText(p *ipc.Proc) string {
	switch {
	case p.Kind != "":
		return "-"
	case p.MaxSteps > 0:
		return fmt.Sprintf("%d/%d", p.Step, p.MaxSteps)
	}
	return strconv.Itoa(p.Step)
}

func tokensText(p *ipc.Proc) string {
	if p.Estimated {
		return "~" + number(p.TokensUsed)
	}
	return number(p.TokensUsed)
}

// costText is what a process has cost itself, in the words that all lists have for it.
func costText(p *ipc.Proc) string { return price.Spent(p.CostUSD, p.TokensUsed, p.Unpriced) }

func dollars(usd float64) string { return price.FromFloat(usd).String() }

// clock renders a time of today, or a date.
func clock(at, now time.Time) string {
	at, now = at.Local(), now.Local()
	if at.YearDay() == now.YearDay() && at.Year() == now.Year() {
		return at.Format("15:04:05")
	}
	return at.Format("2006-01-02 15:04")
}

// number renders n with commas.
func number(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// sizeText renders bytes.
func sizeText(n int64) string {
	if n <= 0 {
		return "-"
	}
	f, unit := float64(n)/1024, 0
	for f >= 1024 && unit < 4 {
		f, unit = f/1024, unit+1
	}
	return strconv.FormatFloat(f, 'f', 1, 64) + "KMGTP"[unit:unit+1]
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return number(n) + " " + many
}

func with(sep, s string) string {
	if s == "" {
		return ""
	}
	return sep + s
}

// errorText is an error for people: without the name of the call, which says nothing to them.
func errorText(err error) string {
	var e *types.SyscallError
	if !errors.As(err, &e) || e.Err == nil {
		return err.Error()
	}
	text := e.Err.Error()
	if at := strings.LastIndex(text, e.Device+": "); e.Device != "" && at >= 0 {
		text = text[at+len(e.Device)+2:] // it has said already whom it is about
	}
	var id types.UUID
	if id.UnmarshalText([]byte(e.Device)) == nil { // the process is known from the screen, and there is little room
		return text
	}
	return with2(e.Device, text)
}

func with2(a, b string) string {
	if a == "" || b == "" {
		return a + b
	}
	return a + ": " + b
}
