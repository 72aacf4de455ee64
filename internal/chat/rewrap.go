package chat

import (
	"fmt"
	"os"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"

	"rnix/internal/tui"
)

// rewrapping is a terminal that wraps its lines anew when it becomes narrower. What was drawn there takes more rows then, so that its beginning is further above the cursor
// than what draws it anew believes, and would stay there beside the new one: before that, the cursor goes up by so much.
type rewrapping struct {
	f *os.File

	mu sync.Mutex
	// +checklocks:mu
	next frame // which is drawn next
	// +checklocks:mu
	drawn frame
	// +checklocks:mu
	up int // rows
}

// frame is what is drawn above the cursor: the cells of each line, of that of the cursor those before it.
type frame []int

// rewraps reports whether the terminal wraps anew and leaves the cursor at its character; it is known of tmux.
func rewraps(environ []string) bool {
	for _, v := range environ {
		if name, value, _ := strings.Cut(v, "="); name == "TMUX" && value != "" {
			return true
		}
	}
	return false
}

// more returns how many rows more a frame takes where w cells are in a row.
func (f frame) more(w int) (n int) {
	for i, cells := range f {
		if i < len(f)-1 {
			cells = max(cells-1, 0) // a row that is just full needs no second one
		}
		n += cells / max(w, 1)
	}
	return n
}

// draws notes what is drawn next.
func (r *rewrapping) draws(t *tui.Theme, lines []string, cursor *tea.Cursor) {
	var f frame
	if cursor != nil {
		for _, l := range lines[:min(cursor.Y, len(lines))] {
			f = append(f, tui.Cells(t, strip(l)))
		}
		f = append(f, cursor.X)
	}
	r.mu.Lock()
	r.next = f
	r.mu.Unlock()
}

// resized notes how many cells are in a row now.
func (r *rewrapping) resized(w int) {
	r.mu.Lock()
	r.up = r.drawn.more(w)
	r.mu.Unlock()
}

// Write writes to the terminal.
func (r *rewrapping) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.drawn = r.next
	if up := r.up; up > 0 {
		r.up = 0
		if _, err := fmt.Fprintf(r.f, "\x1b[%dA", up); err != nil {
			return 0, err
		}
	}
	return r.f.Write(p)
}

// Read reads from the terminal.
func (r *rewrapping) Read(p []byte) (int, error) { return r.f.Read(p) }

// Close closes the terminal.
func (r *rewrapping) Close() error { return r.f.Close() }

// Fd returns the descriptor of the terminal.
func (r *rewrapping) Fd() uintptr { return r.f.Fd() }
