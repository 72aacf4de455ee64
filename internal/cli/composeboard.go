package cli

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rnix/internal/price"
	"rnix/ipc"
)

// board shows a line for each node of a run, drawn anew in place. It belongs to one goroutine. clear and
// draw may be called on nil.
type board struct {
	s     *stream
	rows  func() int // of the terminal
	drawn int        // lines
	last  string
}

// newBoard returns a board if standard error is a terminal that can move, and nil if not.
func newBoard(out *output) *board {
	if !out.talks() || !out.err.canMove() {
		return nil
	}
	return newBoardOn(out)
}

func newBoardOn(out *output) *board {
	return &board{s: &out.err, rows: func() int {
		if f, ok := out.err.w.(*os.File); ok {
			if ws, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil && ws.Row > 0 {
				return int(ws.Row)
			}
		}
		return 24
	}}
}

// draw shows the nodes in place of what was drawn before. Where not all have room, those that have ended
// well or have not begun are left out first.
func (b *board) draw(r *ipc.ComposeRun) {
	if b == nil {
		return
	}
	lines := b.lines(r, max(b.rows()-3, 3))
	text := strings.Join(lines, "\n") + "\n"
	if text == b.last && b.drawn > 0 {
		return
	}
	b.clear()
	_, _ = io.WriteString(b.s.w, text)
	b.drawn, b.last = len(lines), text
}

// clear takes away what was drawn.
func (b *board) clear() {
	if b == nil || b.drawn == 0 {
		return
	}
	_, _ = io.WriteString(b.s.w, fmt.Sprintf("\r\x1b[%dA\x1b[J", b.drawn))
	b.drawn = 0
}

// print shows all nodes, for good.
func (b *board) print(r *ipc.ComposeRun) {
	_, _ = io.WriteString(b.s.w, strings.Join(b.lines(r, len(r.Nodes)+1), "\n")+"\n")
}

// weight says which nodes are left out first where not all have room.
func weight(state string) int {
	switch state {
	case "running", "failed", "retrying", suspended, "stopped", "paused":
		return 2
	case "waiting", "expanded":
		return 1
	}
	return 0
}

func (b *board) lines(r *ipc.ComposeRun, room int) []string {
	least := 0
	for ; least < 2; least++ { // at last only those that work or need somebody, as many as there is room for
		n := 0
		for i := range r.Nodes {
			if weight(r.Nodes[i].State) >= least {
				n++
			}
		}
		if n <= room {
			break
		}
	}
	width := 4
	for i := range r.Nodes {
		width = max(width, min(cells(r.Nodes[i].Name), 32))
	}
	var out []string
	hidden := 0
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if weight(n.State) < least || len(out) >= room {
			hidden++
			continue
		}
		out = append(out, b.line(n, width))
	}
	total := fmt.Sprintf("%s | %s tokens%s | %s", nodeCounts(r), tokens(r.TokensUsed, false), price.Behind(r.CostUSD, r.TokensUsed, r.Unpriced), duration(r.ElapsedMs))
	if hidden > 0 {
		total = plural(hidden, "more node", "more nodes") + " | " + total
	}
	return append(out, b.s.paint(dim, cut(total, b.s.width-1)))
}

func (b *board) line(n *ipc.ComposeNode, width int) string {
	name, state := cut(n.Name, width), n.State
	head := name + strings.Repeat(" ", width-cells(name)+2)
	pad := strings.Repeat(" ", max(11-len(state), 1))
	var parts []string
	if n.Item != "" {
		parts = append(parts, cut(oneLine(n.Item), 40))
	}
	if n.Step > 0 {
		parts = append(parts, fmt.Sprintf("step %d", n.Step))
	}
	if n.TokensUsed > 0 {
		parts = append(parts, tokens(n.TokensUsed, false)+" tokens"+price.Behind(n.CostUSD, n.TokensUsed, n.Unpriced))
	}
	if n.ElapsedMs > 0 {
		parts = append(parts, duration(n.ElapsedMs))
	}
	if n.Branch != "" {
		parts = append(parts, "on "+oneLine(n.Branch))
	}
	if n.Attempt > 1 {
		parts = append(parts, fmt.Sprintf("attempt %d", n.Attempt))
	}
	if why := nodeWhy(n, time.Now()); why != "" {
		parts = append(parts, why)
	}
	rest := strings.Join(parts, " | ")
	if b.s.width > 0 {
		rest = cut(rest, max(b.s.width-1-cells(head)-len(state)-len(pad), 8))
	}
	return strings.TrimRight(head+b.s.paint(nodeStyle(state), state)+pad+rest, " ")
}

// nodeWhy says why a node is as it is.
func nodeWhy(n *ipc.ComposeNode, now time.Time) string {
	why := oneLine(n.Why)
	switch {
	case n.State == "waiting" && len(n.Needs) > 0:
		return "for " + strings.Join(n.Needs, ", ")
	case n.State == "retrying" && !n.Until.IsZero():
		return "again in " + duration(max(n.Until.Sub(now), 0).Milliseconds()) + ": " + why
	case !n.Until.IsZero():
		return why + " until " + clock(n.Until, now)
	}
	return why
}

func nodeStyle(state string) style {
	switch state {
	case "running":
		return cyan
	case "succeeded":
		return green
	case "failed":
		return red
	case "retrying", suspended, "stopped", "paused":
		return yellow
	}
	return dim
}

// nodeCounts is how many nodes are in which state.
func nodeCounts(r *ipc.ComposeRun) string {
	var parts []string
	for _, state := range []string{"succeeded", "failed", "skipped", "running", "retrying", "paused", suspended, "stopped", "waiting", "expanded"} {
		if n := r.Counts[state]; n > 0 {
			parts = append(parts, fmt.Sprintf("%d %s", n, state))
		}
	}
	return strings.Join(parts, ", ")
}
