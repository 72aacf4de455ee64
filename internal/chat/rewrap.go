package chat

import (
	"fmt"
	"os"
	"regexp"
	"slices"
	"strings"
	"sync"

	tea "charm.land/bubbletea/v2"
	"golang.org/x/sys/unix"

	"rnix/internal/tui"
)

// rewrapping is a terminal that wraps its lines anew when it becomes narrower. What was drawn there takes more rows then, so that its beginning is further above the cursor
// than what draws it anew believes, and would stay there beside the new one: before that, the cursor goes up by so much.
//
// How wide it is, is asked for at each writing: what draws may do so once more for the width that was, and is told of the new one later.
type rewrapping struct {
	f     *os.File
	width func() int // in cells; 0 = not known

	mu sync.Mutex
	// +checklocks:mu
	next frame // which is drawn next
	// +checklocks:mu
	drawn frame
	// +checklocks:mu
	rests bool // the cursor is where what is drawn begins, and is not to be seen
	// +checklocks:mu
	hid bool // it was hidden for that
	// +checklocks:mu
	w int // when it was drawn, in cells
}

// newRewrapping returns a terminal that wraps its lines anew.
func newRewrapping(f *os.File) *rewrapping {
	return &rewrapping{f: f, width: func() int {
		if size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ); err == nil {
			return int(size.Col)
		}
		return 0
	}}
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

// cut returns what is seen of a frame where w cells are in a row, and longer lines do not go on in the next one; 0 = all of it.
func (f frame) cut(w int) frame {
	if w <= 0 {
		return f
	}
	out := slices.Clone(f)
	for i := range out {
		out[i] = min(out[i], w)
	}
	if n := len(out); n > 0 {
		out[n-1] = min(out[n-1], w-1) // the cursor stays in the row
	}
	return out
}

// draws notes what is drawn next.
func (r *rewrapping) draws(t *tui.Theme, lines []string, cursor *tea.Cursor, rests bool) {
	var f frame
	if cursor != nil {
		for _, l := range lines[:min(cursor.Y, len(lines))] {
			f = append(f, tui.Cells(t, strip(l)))
		}
		f = append(f, cursor.X)
	}
	r.mu.Lock()
	r.next, r.rests = f, rests
	r.mu.Unlock()
}

// insertsAbove finds the control sequence that makes room for lines above what is drawn: no other writing has it.
var insertsAbove = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\x1b\[[0-9]*L`) })

// Controls of a terminal.
const (
	// Whether a line that is longer than a row goes on in the next one.
	wrapsNot = "\x1b[?7l"
	wraps    = "\x1b[?7h"
	// Whether its cursor is seen.
	hidesCursor = "\x1b[?25l"
	showsCursor = "\x1b[?25h"
	// All from the cursor on is cleared: it is at the beginning of a row. Where that is the first of the screen, tmux keeps what was there, and a reader would find it above
	// (screen-write.c, screen_write_clearendofscreen): all behind the first cell is cleared, and then the row.
	clears     = "\x1b[J"
	clearsHere = "\x1b[C\x1b[J\r\x1b[2K"
)

// Write writes to the terminal.
func (r *rewrapping) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	var before, after string
	w := r.width()
	if w > 0 && w != r.w {
		if up := r.drawn.more(w); up > 0 {
			before = fmt.Sprintf("\x1b[%dA", up)
		}
	}
	r.w = w
	if insertsAbove().Match(p) {
		r.drawn = nil // the cursor is where it begins
	} else {
		// A line that has no room for its end, because the terminal is narrower already, must not move those below it.
		r.drawn, before, after = r.next.cut(w), before+wrapsNot, wraps
		switch {
		case r.rests:
			after += hidesCursor
		case r.hid && len(r.next) > 0: // Bubble Tea takes it for shown
			after += showsCursor
		}
		r.hid = r.rests
	}
	text := strings.ReplaceAll(string(p), clears, clearsHere)
	if _, err := r.f.WriteString(before + text + after); err != nil {
		return 0, err
	}
	return len(p), nil
}

// leave shows the cursor again, at the end.
func (r *rewrapping) leave() { _, _ = r.f.WriteString(showsCursor) }

// Read reads from the terminal.
func (r *rewrapping) Read(p []byte) (int, error) { return r.f.Read(p) }

// Close closes the terminal.
func (r *rewrapping) Close() error { return r.f.Close() }

// Fd returns the descriptor of the terminal.
func (r *rewrapping) Fd() uintptr { return r.f.Fd() }
