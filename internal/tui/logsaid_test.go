package tui

import (
	"strings"
	"testing"

	"github.com/charmbracelet/x/ansi"

	"rnix/internal/event"
	"rnix/ipc"
	"rnix/types"
)

func TestTheLogShowsALineThatAModelHasBegun(t *testing.T) {
	th := NewTheme(func(string) (string, bool) { return "", false })
	p := &logPane{e: &env{t: th}, off: map[category]bool{}, long: newLong(th)}
	p.sub.proc = &ipc.Proc{}
	p.long.tail = true
	id := types.NewUUID()
	hear := func(e ipc.Event) { e.UUID = id; p.hear([]heard{{ev: e}}) }
	hear(ipc.Event{Kind: event.Piece, Name: "output", Answer: 1, Text: "A line.\nAnd " + strings.Repeat("more ", 20) + "\x1b[31mend"})
	rows := strings.Split(ansi.Strip(p.view(40, 8)), "\n")
	if last := rows[len(rows)-1]; !strings.HasSuffix(last, "end") || ansi.StringWidth(last) > 40 || !strings.Contains(rows[1], "A line.") {
		t.Fatalf("shown:\n%s", strings.Join(rows, "\n"))
	}
	hear(ipc.Event{Kind: event.LogLine, Name: "output", Answer: 1, At: 8 + 4 + 100 + 8, Total: 1})
	text := ansi.Strip(p.view(200, 8))
	if strings.Count(text, "A line.") != 1 || strings.Count(text, "And more") != 1 || len(p.said.Open()) > 0 {
		t.Errorf("when it is complete:\n%s", text)
	}
	p.off[catOutput] = true
	hear(ipc.Event{Kind: event.Piece, Name: "output", Answer: 2, Text: "hidden"})
	if p.render(); strings.Contains(p.view(80, 8), "hidden") {
		t.Error("shown though outputs are hidden")
	}
}
