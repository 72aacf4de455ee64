package debug

import (
	"slices"
	"strings"

	"rnix/internal/event"
	"rnix/types"
)

// Level says how important a line of a log is. Part of the wire format.
type Level string

// The levels, the least important first.
const (
	LevelDebug   Level = "debug"   // what a model thinks
	LevelInfo    Level = "info"    // what it says, and what its tools print
	LevelWarning Level = "warning" // what may go wrong
	LevelError   Level = "error"   // what went wrong
)

var levels = []Level{LevelDebug, LevelInfo, LevelWarning, LevelError}

// Levels returns the levels, the least important first.
func Levels() []Level { return slices.Clone(levels) }

// rank is the place of a level among the others; -1 = it is none.
func (l Level) rank() int { return slices.Index(levels, l) }

func levelNames() string {
	out := make([]string, len(levels))
	for i, l := range levels {
		out[i] = string(l)
	}
	return strings.Join(out, ", ")
}

// categories are the kinds of log lines.
var categories = []string{"think", "tool", "output", "warning"}

// Categories returns the categories of log lines.
func Categories() []string { return slices.Clone(categories) }

// CategoryOf returns the category of an event in a log: what is no log line is a warning.
func CategoryOf(e *event.Event) string {
	if e.Kind == event.LogLine {
		return e.Name
	}
	return "warning"
}

// LevelOf returns how important an event is in a log.
func LevelOf(e *event.Event) Level {
	switch {
	case e.Kind == event.Lag, e.Kind == event.Refused, e.Kind == event.Asked, e.Kind == event.Stalled && e.Result != "over", unowned(e):
		return LevelWarning
	case e.Kind == event.Exited && e.Exit != nil && e.Exit.Code == types.ExitBudget: // it can go on
		return LevelWarning
	case e.Kind == event.Snapshot && e.Err != "":
		return LevelWarning
	case broken(e):
		return LevelError
	case e.Kind == event.LogLine && e.Name == "think":
		return LevelDebug
	case e.Kind == event.LogLine && e.Name == "warning":
		return LevelWarning
	}
	return LevelInfo
}
