package cli

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"rnix/ipc"
)

func TestTheBoardShowsWhatWorksWhereNotAllHasRoom(t *testing.T) {
	var b bytes.Buffer
	board := &board{s: &stream{w: &b, terminal: true, width: 80}, rows: func() int { return 8 }}
	r := &ipc.ComposeRun{Counts: map[string]int{"succeeded": 20, "running": 7}}
	for i := range 20 {
		r.Nodes = append(r.Nodes, ipc.ComposeNode{Name: fmt.Sprint("done", i), State: "succeeded"})
	}
	for i := range 7 {
		r.Nodes = append(r.Nodes, ipc.ComposeNode{Name: fmt.Sprint("works", i), State: "running", Why: strings.Repeat("long ", 40)})
	}
	board.draw(r)
	lines := strings.Split(strings.TrimSuffix(b.String(), "\n"), "\n")
	if len(lines) != 6 || !strings.HasPrefix(lines[0], "works0") || !strings.HasPrefix(lines[5], "22 more nodes | 20 succeeded, 7 running") {
		t.Errorf("%q", lines)
	}
	for _, l := range lines {
		if cells(l) > 79 {
			t.Errorf("%d cells: %q", cells(l), l)
		}
	}
	b.Reset()
	board.draw(r) // nothing has changed
	if b.Len() > 0 {
		t.Errorf("%q", b.String())
	}
	r.Nodes = r.Nodes[:1]
	board.draw(r)
	if !strings.HasPrefix(b.String(), "\r\x1b[6A\x1b[J") || strings.Count(b.String(), "\n") != 2 {
		t.Errorf("%q", b.String())
	}
}
