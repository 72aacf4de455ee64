package chat

import (
	"context"
	"os"
	"strings"
	"testing"
	"time"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
	"rnix/ipc"
)

// wrapped is a conversation in a terminal that wraps anew. settled says to it that its size has settled.
func wrapped(t *testing.T) (d *desk, settled func()) {
	d = begun(t)
	d.m.t = &tui.Theme{}
	d.m.term = &rewrapping{width: func() int { return 0 }}
	var waits []tea.Msg
	d.m.after = func(in time.Duration, msg tea.Msg) tea.Cmd {
		if in == settleTime {
			waits = append(waits, msg)
		}
		return nil
	}
	return d, func() {
		due := waits
		for waits = nil; len(due) > 0; due = due[1:] {
			d.hearsOf(due[0])
		}
	}
}

// hearsOf takes a message in as the program does.
func (d *desk) hearsOf(msg tea.Msg) {
	d.does(d.m.take(settle(d.m, msg)))
	showDue(d.m)
}

func size(w, h int) tea.Msg { return tea.WindowSizeMsg{Width: w, Height: h} }

// The edge of the terminal is dragged while a line is typed: nothing is drawn and nothing is printed until it is still.
func TestNothingIsDrawnWhileTheTerminalChanges(t *testing.T) {
	d, settled := wrapped(t)
	d.hearsOf(size(100, 30)) // the first one, which is no change
	d.m.ed.set("half a line")
	before := d.m.View()
	for _, w := range []int{90, 80, 100, 70} {
		d.hearsOf(size(w, 30))
		d.m.print("a line")
		d.m.ed.set("half a line more")
		if v := d.m.View(); v.Content != before.Content || d.m.w != 100 || d.m.flush() != nil {
			t.Errorf("at %d: %d cells, %q", w, d.m.w, v.Content)
		}
	}
	settled()
	if v := d.m.View(); d.m.w != 70 || !strings.Contains(v.Content, "half a line more") || v.Cursor == nil || v.Cursor.X != len("> half a line more") {
		t.Errorf("%d cells, %+v", d.m.w, v)
	}
	if d.m.flush() == nil || len(d.m.out.lines) != 0 {
		t.Errorf("not printed: %q", d.m.out.lines)
	}
}

// While the agent works and nothing is typed, what is drawn follows the edge; only what is printed for good waits.
func TestACursorThatRestsFollowsTheTerminal(t *testing.T) {
	d, settled := wrapped(t)
	d.hearsOf(size(100, 30))
	d.hearsOf(eventsOf(d, ipc.Event{Kind: "step_started", Step: 1}))
	d.m.out = printer{}
	if !rests(d.m) {
		t.Fatal("it does not rest")
	}
	for _, w := range []int{90, 80, 100, 70} {
		d.hearsOf(size(w, 30))
		d.m.print("a line")
		if v := d.m.View(); d.m.w != w || v.Cursor == nil || v.Cursor.X != 0 || v.Cursor.Y != 0 || !strings.Contains(v.Content, "\x1b[7ms\x1b[m\x1b[2may more") || d.m.flush() != nil {
			t.Errorf("at %d: %d cells, %+v", w, d.m.w, v)
		}
	}
	settled()
	if d.m.flush() == nil || len(d.m.out.lines) != 0 {
		t.Errorf("not printed: %q", d.m.out.lines)
	}
	// A key is pressed while it changes: what is drawn stays until it is still.
	d.hearsOf(size(80, 30))
	before := d.m.View()
	d.m.ed.set("x")
	if v := d.m.View(); v.Content != before.Content || v.Cursor.Y != 0 {
		t.Errorf("drawn while it changes: %q", v.Content)
	}
	settled()
	if v := d.m.View(); !strings.Contains(v.Content, "› \x1b[mx") && !strings.Contains(v.Content, "> \x1b[mx") || d.m.w != 80 {
		t.Errorf("not drawn at the end: %q", v.Content)
	}
	d.m.ed.set("")
	d.m.View()
	// What has settled later than a line was begun is not taken for the size of then.
	d.hearsOf(size(60, 30))
	d.m.ed.set("x")
	d.hearsOf(size(50, 30))
	d.m.ed.set("")
	d.hearsOf(size(40, 30))
	settled()
	if d.m.w != 40 || d.m.size.changed || d.m.size.frozen {
		t.Errorf("%d cells, %+v", d.m.w, d.m.size)
	}
}

// Nothing is printed for good before something was drawn.
func TestNothingIsPrintedBeforeTheFirstFrame(t *testing.T) {
	d := newDesk(t)
	out, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	defer in.Close()
	d.m.drawing = newDrawing(in)
	d.m.print("a line")
	write := func(s string) {
		if _, err := d.m.drawing.Write([]byte(s)); err != nil {
			t.Fatal(err)
		}
	}
	write("\r\x1b[J") // there is nothing to draw yet
	d.m.View()
	write("\x1b[?2026$p") // a question of Bubble Tea
	select {
	case <-d.m.drawing.first:
		t.Error("a question is taken for a frame")
	default:
	}
	if d.m.flush() != nil {
		t.Error("it is printed at once")
	}
	write("\r\x1b[J> ")
	d.tells(d.m.drawing.await(t.Context()))
	d.m.print("a line") // the desk has taken the one before
	if d.m.flush() == nil {
		t.Error("it is not printed when something is drawn")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if msg := newDrawing(in).await(ctx); msg != nil {
		t.Errorf("%v without a frame", msg)
	}
}
