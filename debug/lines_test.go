package debug

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"rnix/internal/event"
	"rnix/types"
)

func shown(list []event.Event) string {
	var b strings.Builder
	for i := range list {
		fmt.Fprintf(&b, "%s:%s|", list[i].Kind, list[i].Text)
	}
	return b.String()
}

func TestPiecesBecomeLines(t *testing.T) {
	id := types.NewUUID()
	var l Lines
	take := func(e event.Event, want, open string) {
		t.Helper()
		e.UUID = id
		if got := shown(l.Take(&e)); got != want {
			t.Errorf("%s %q makes %q, want %q", e.Kind, e.Text, got, want)
		}
		if got := shown(l.Open()); got != open {
			t.Errorf("after %q there begin %q, want %q", e.Text, got, open)
		}
	}
	piece := func(name, text string, answer uint64, at int) event.Event {
		return event.Event{Kind: event.Piece, Name: name, Text: text, Answer: answer, At: at}
	}
	line := func(name, text string, answer uint64, at, total int) event.Event {
		return event.Event{Kind: event.LogLine, Name: name, Text: text, Answer: answer, At: at, Total: total}
	}
	take(event.Event{Kind: event.StepStarted}, "step_started:|", "")
	take(piece("output", "He", 1, 0), "", "log:He|")
	take(piece("think", "so", 1, 0), "", "log:He|log:so|")
	take(piece("output", "llo\nyou\nth", 1, 2), "log:Hello|log:you|", "log:th|log:so|")
	take(line("output", "", 1, 6, 0), "", "log:th|log:so|") // that was a part of the piece
	take(line("output", "ere", 1, 12, 4), "log:there|", "log:so|")
	take(line("think", "", 1, 2, 0), "log:so|", "") // complete, without a line break
	take(line("output", "whole", 1, 16, 6), "log:whole|", "")
	take(line("output", "", 1, 22, 1), "log:|", "") // an empty line
	take(event.Event{Kind: event.LogLine, Name: "tool", Text: "ran"}, "log:ran|", "")
	take(piece("output", "cut", 2, 0), "", "log:cut|")
	take(piece("output", "again", 3, 0), "log:cut|", "log:again|")
	take(line("output", "old", 2, 0, 4), "", "log:again|")
	take(event.Event{Kind: event.Exited}, "log:again|exited:|", "")
}

// Of a stream that is opened again in the middle of an answer, no byte comes twice.
func TestLinesComeOnceOverConnections(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.StringMatching(`[ab\n]{1,40}`).Draw(t, "text")
		var l Lines
		var got []event.Event
		for range rapid.IntRange(1, 3).Draw(t, "connections") {
			at := 0
			for at < len(text) && rapid.IntRange(0, 9).Draw(t, "ends") > 0 {
				to := rapid.IntRange(at+1, len(text)).Draw(t, "to")
				got = append(got, l.Take(&event.Event{Kind: event.Piece, Name: "output", Answer: 7, At: at, Text: text[at:to]})...)
				at = to
			}
		}
		got = append(got, l.Take(&event.Event{Kind: event.Piece, Name: "output", Answer: 7, Text: text})...)
		got = append(got, l.Take(&event.Event{Kind: event.Exited})...)
		var lines []string
		for i := range got[:len(got)-1] {
			lines = append(lines, got[i].Text)
		}
		if want := strings.TrimSuffix(text, "\n"); strings.Join(lines, "\n") != want {
			t.Fatalf("%q became %q", text, lines)
		}
	})
}
