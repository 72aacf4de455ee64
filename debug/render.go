package debug

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"rnix/internal/event"
	"rnix/types"
)

// Lengths of the parts of a line, in bytes.
const (
	lineArgs   = 120
	lineResult = 160
)

// slow is the duration from which on a line is marked.
const slow = time.Second

// stamp is how lines show the time, in the zone that the time is in.
const stamp = "15:04:05.000"

// StraceLine renders a syscall: time, PID, name(arguments) = result <duration>, and a mark if it
// took over a second; of one that has begun, that it is unfinished. Long values are cut in the middle.
func StraceLine(e types.SyscallEvent) string {
	call := fmt.Sprintf("%s %s %s(%s)", e.Time.Format(stamp), e.PID, oneLine(e.Syscall, lineArgs), oneLine(e.Args, lineArgs))
	if e.Begun {
		return call + " <unfinished ...>"
	}
	result := oneLine(e.Result, lineResult)
	if e.Err != "" {
		result = "error: " + oneLine(e.Err, lineResult)
	} else if result == "" {
		result = "ok"
	}
	mark := ""
	if e.Duration >= slow {
		mark = " [slow]"
	}
	return fmt.Sprintf("%s = %s <%s>%s", call, result, Duration(e.Duration), mark)
}

// LogLine renders a line of an agent's log. Further lines of its text are indented.
func LogLine(l types.LogEntry) string {
	text := strings.TrimRight(Sanitize(l.Text), "\n")
	return fmt.Sprintf("%s %s [%s] %s", l.Time.Format(stamp), l.PID, oneLine(l.Category, lineArgs), strings.ReplaceAll(text, "\n", "\n    "))
}

// StepLine renders the end of a step: its number and limit, action, summary, tokens and duration. e
// is of kind StepEnded.
func StepLine(e *event.Event) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s %s step %d", e.Time.Format(stamp), e.PID, e.Step)
	if e.Total > 0 {
		fmt.Fprintf(&b, "/%d", e.Total)
	}
	if e.Name != "" {
		fmt.Fprintf(&b, " %s", oneLine(e.Name, lineArgs))
	}
	if e.Text != "" {
		fmt.Fprintf(&b, ": %s", oneLine(e.Text, lineResult))
	}
	if e.Tokens > 0 {
		fmt.Fprintf(&b, ", %s tokens", thousands(e.Tokens))
	}
	fmt.Fprintf(&b, " <%s>", Duration(e.Dur))
	if e.Err != "" {
		fmt.Fprintf(&b, " error: %s", oneLine(e.Err, lineResult))
	}
	return b.String()
}

// Line renders any event.
func Line(e *event.Event) string {
	if s, ok := SyscallEvent(e); ok {
		line := StraceLine(s)
		if f := FailureOf(e); f.Answered {
			line += " [" + oneLine(f.Text, lineArgs) + "]"
		}
		return line
	}
	if l, ok := LogEntry(e); ok {
		return LogLine(l)
	}
	if e.Kind == event.StepEnded {
		return StepLine(e)
	}
	return fmt.Sprintf("%s %s %s", e.Time.Format(stamp), e.PID, about(e))
}

// about says what an event is about that has no form of its own.
func about(e *event.Event) string {
	text := func(s string) string { return oneLine(s, lineResult) }
	switch e.Kind {
	case event.Spawned:
		by := ""
		if e.PPID != 0 {
			by = " by " + e.PPID.String()
		}
		return fmt.Sprintf("spawned%s (%s) %s", by, text(model(e)), strconv.Quote(text(e.Intent)))
	case event.StepStarted:
		if e.Total == 0 {
			return fmt.Sprintf("step %d", e.Step)
		}
		return fmt.Sprintf("step %d/%d", e.Step, e.Total)
	case event.StateChanged:
		return fmt.Sprintf("%s -> %s", e.From, e.To)
	case event.Renamed:
		return renamed(text(e.Text), text(e.Name))
	case event.Signalled:
		return text(e.Name) + " " + text(e.Result)
	case event.Paused:
		return with("paused", text(e.Text))
	case event.Resumed:
		return fmt.Sprintf("resumed after %s", Duration(e.Dur))
	case event.Waiting:
		switch {
		case e.Text == "":
			return "waits no more"
		case e.Until.IsZero():
			return with("waits", text(e.Text))
		}
		return fmt.Sprintf("waits until %s: %s", e.Until.Format("15:04:05"), text(e.Text))
	case event.NodeChanged:
		attempt := ""
		if e.Step > 1 {
			attempt = fmt.Sprintf(" (attempt %d)", e.Step)
		}
		return with(fmt.Sprintf("node %s: %s%s", text(e.Name), text(e.Result), attempt), text(e.Text))
	case event.Exited:
		end := "suspended on disk"
		if e.Exit != nil {
			end = fmt.Sprintf("exited %d (%s)", e.Exit.Code, text(e.Exit.Reason))
		}
		return fmt.Sprintf("%s after %s, %s tokens", end, Duration(e.Dur), thousands(e.Tokens))
	case event.Reparented:
		return fmt.Sprintf("reparented to %s", e.PPID)
	case event.Mounted:
		return fmt.Sprintf("mounted %s <%s>", text(e.Path), Duration(e.Dur))
	case event.Unmounted:
		return "unmounted " + text(e.Path)
	case event.ServerLine:
		return fmt.Sprintf("%s [%s] %s", text(strings.TrimPrefix(e.Path, "/mnt/mcp/")), text(e.Name), text(e.Text))
	case event.StorageError:
		return fmt.Sprintf("storage error: %s: %s", text(e.Path), text(e.Err))
	case event.Messaged:
		from := "the user"
		if e.PPID != 0 {
			from = e.PPID.String()
		}
		return fmt.Sprintf("%s %s from %s: %s", text(e.Name), text(e.Args), from, text(e.Text))
	case event.Asked:
		return fmt.Sprintf("asked %s: %s", text(e.Args), text(e.Text))
	case event.Answered:
		said := fmt.Sprintf("answer to %s: %s", text(e.Args), text(e.Result))
		if e.Text != "" {
			said += ": " + text(e.Text)
		}
		return said
	case event.Delivered:
		return "delivered: " + text(e.Args)
	case event.Snapshot:
		if e.Err != "" {
			return "snapshot of the files: " + text(e.Err)
		}
		id := text(e.Text) // of a copy or a commit; whoever wants all of it has --json
		return fmt.Sprintf("files kept as %s %s <%s>", text(e.Name), id[:min(len(id), 12)], Duration(e.Dur))
	case event.Stalled:
		if e.Result == "over" {
			return "makes progress again"
		}
		return with(fmt.Sprintf("HEARTBEAT_STALL: no progress for %s (%s)", Duration(e.Dur), text(e.Name)), text(e.Text))
	case event.Leased:
		return with(fmt.Sprintf("session %s under token %d: %s", text(e.Name), e.Step, text(e.Result)), text(e.Text))
	case event.Refused:
		return oneLine(e.Text, MaxText)
	case event.Grouped:
		return fmt.Sprintf("%s group %d", text(e.Name), e.Step)
	}
	return with(text(string(e.Kind)), text(e.Text))
}

func with(what, why string) string {
	if why == "" {
		return what
	}
	return what + ": " + why
}

func model(e *event.Event) string {
	if e.Model == "" {
		return e.Provider
	}
	return e.Provider + "/" + e.Model
}

// oneLine returns s cut, clean and on one line.
func oneLine(s string, limit int) string {
	// The first cut bounds the work. It may divide an escape sequence, so cleaning comes after it.
	s = Sanitize(Cut(s, 16*limit))
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\n", `\n`), "\t", `\t`)
	return Cut(s, limit)
}

// Age renders a time that is still growing, or that nobody needs more exactly, in whole seconds: 0s, 32s, 4m05s, 2h10m. The page
// has the same (age in lib/format.js).
func Age(d time.Duration) string {
	if d < time.Second {
		return "0s"
	}
	return Duration(d.Truncate(time.Second))
}

// Duration renders d with three digits: 15µs, 1.25ms, 32.1s, 4m05s, 2h10m, 9d04h. The page has the same (duration in
// lib/format.js).
func Duration(d time.Duration) string {
	if d < 0 {
		return "-" + Duration(-d)
	}
	switch {
	case d == 0:
		return "0s"
	case d < time.Microsecond:
		return fmt.Sprintf("%dns", d.Nanoseconds())
	case d < time.Millisecond:
		return digits(float64(d)/1e3, "µs")
	case d < time.Second:
		return digits(float64(d)/1e6, "ms")
	case d < time.Minute:
		return digits(float64(d)/1e9, "s")
	case d < time.Hour:
		return fmt.Sprintf("%dm%02ds", int(d.Minutes()), int(d.Seconds())%60)
	}
	if d < 48*time.Hour {
		return fmt.Sprintf("%dh%02dm", int(d.Hours()), int(d.Minutes())%60)
	}
	return fmt.Sprintf("%dd%02dh", int(d.Hours())/24, int(d.Hours())%24)
}

func digits(x float64, unit string) string {
	precision := 0
	switch {
	case x < 10:
		precision = 2
	case x < 100:
		precision = 1
	}
	s := strconv.FormatFloat(x, 'f', precision, 64)
	if strings.Contains(s, ".") {
		s = strings.TrimRight(strings.TrimRight(s, "0"), ".")
	}
	return s + unit
}

// thousands renders n with commas.
func thousands(n int) string {
	s := strconv.Itoa(n)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// renamed says how the name of a process has changed; empty = it has none.
func renamed(was, name string) string {
	if name == "" {
		return "lost its name " + strconv.Quote(was)
	}
	if was == "" {
		return "is named " + strconv.Quote(name)
	}
	return "renamed from " + strconv.Quote(was) + " to " + strconv.Quote(name)
}
