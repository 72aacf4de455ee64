package chat

import (
	"bytes"
	"context"
	"io"
	"sync"
	"sync/atomic"

	tea "charm.land/bubbletea/v2"
)

// drawing is a terminal of which is known when something was drawn there for the first time. What is printed for good before that wipes the whole screen: Bubble Tea takes it
// for its own as long as nothing is drawn on it (cursed_renderer.go, insertAbove).
type drawing struct {
	file
	begun atomic.Bool   // there is something to draw
	first chan struct{} // closed when it was drawn
	once  sync.Once
}

// file is what Bubble Tea takes for a terminal.
type file interface {
	io.ReadWriteCloser
	Fd() uintptr
}

// drawnMsg says that something was drawn.
type drawnMsg struct{}

func newDrawing(f file) *drawing { return &drawing{file: f, first: make(chan struct{})} }

// Write writes to the terminal.
func (d *drawing) Write(p []byte) (int, error) {
	n, err := d.file.Write(p)
	if d.begun.Load() && bytes.Contains(p, []byte(clears)) { // as each drawing anew does at its beginning
		d.once.Do(func() { close(d.first) })
	}
	return n, err
}

// await is the command that waits until something was drawn.
func (d *drawing) await(ctx context.Context) tea.Msg {
	select {
	case <-d.first:
		return drawnMsg{}
	case <-ctx.Done():
		return nil
	}
}
