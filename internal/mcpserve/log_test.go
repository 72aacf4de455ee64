package mcpserve

import (
	"fmt"
	"strings"
	"testing"

	"rnix/internal/event"
	"rnix/ipc"
)

func TestLogWindowGoesOnWhereItEndedAndKeepsItsBounds(t *testing.T) {
	events := make([]ipc.Event, 25)
	for i := range events {
		events[i] = ipc.Event{Kind: event.LogLine, Name: []string{"think", "tool"}[i%2], Text: fmt.Sprint("line ", i+1)}
	}
	read := func(w logWindow) logOut {
		for i := range events {
			if w.full {
				break
			}
			w.take(&events[i])
		}
		return w.out()
	}
	numbers := func(o logOut) string {
		var n []string
		for _, l := range o.Lines {
			n = append(n, fmt.Sprint(l.Number))
		}
		return strings.Join(n, " ") + fmt.Sprintf(" next %d more %v", o.Next, o.More)
	}
	for _, tt := range []struct {
		w    logWindow
		want string
	}{
		{logWindow{limit: 3, bytes: 1000, last: true}, "23 24 25 next 25 more false"},
		{logWindow{limit: 3, bytes: 1000}, "1 2 3 next 3 more true"},
		{logWindow{limit: 3, bytes: 1000, since: 3}, "4 5 6 next 6 more true"},
		{logWindow{limit: 3, bytes: 1000, since: 22}, "23 24 25 next 25 more false"},
		{logWindow{limit: 3, bytes: 1000, since: 25}, " next 25 more false"},
		{logWindow{limit: 3, bytes: 1000, since: 99}, " next 25 more false"},
		{logWindow{limit: 9, bytes: 14}, "1 2 next 2 more true"},
		{logWindow{limit: 9, bytes: 1}, "1 next 1 more true"},
		{logWindow{limit: 9, bytes: 1, last: true}, "25 next 25 more false"},
		{logWindow{limit: 2, bytes: 1000, category: "tool"}, "2 4 next 5 more true"},
		{logWindow{limit: 99, bytes: 1000, category: "tool", since: 20}, "22 24 next 25 more false"},
		{logWindow{limit: 2, bytes: 1000, category: "output"}, " next 25 more false"},
	} {
		if got := numbers(read(tt.w)); got != tt.want {
			t.Errorf("%+v: %s, want %s", tt.w, got, tt.want)
		}
	}
	w := logWindow{limit: 1, bytes: maxLog, last: true}
	w.take(&ipc.Event{Kind: event.LogLine, Text: strings.Repeat("é", maxLine)})
	if got := w.lines[0].Text; len(got) > maxLine+len("…") || !strings.HasSuffix(got, "é…") {
		t.Errorf("a long line has %d bytes and ends in %q", len(got), got[len(got)-5:])
	}
}
