package cli

import (
	"io"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"rnix/debug"
)

// speakPause is how long a model has to be silent within a line until the status line comes back below it.
const speakPause = 400 * time.Millisecond

// voice is what models say on a terminal while they say it. It belongs to one goroutine.
type voice struct {
	last    string // what the model of a run has said last, if the terminal has all of it
	midLine bool   // a line has begun
	column  int    // ... and is so wide, in cells
}

// speaks reports whether what models say is shown as they say it: on a terminal, to a person.
func speaks(o *output) bool { return o.talks() && o.err.terminal }

// sameTerminal reports whether two streams go to one terminal.
func sameTerminal(a, b *stream) bool {
	fa, ok := a.w.(*os.File)
	fb, also := b.w.(*os.File)
	if !ok || !also || !a.terminal || !b.terminal {
		return false
	}
	var x, y unix.Stat_t
	return unix.Fstat(int(fa.Fd()), &x) == nil && unix.Fstat(int(fb.Fd()), &y) == nil && x.Rdev == y.Rdev
}

// shows reports whether the terminal on which a result would be printed has it already.
func (v *voice) shows(o *output, result string) bool {
	return !o.lastLine && result == strings.TrimRight(v.last, "\n") && sameTerminal(&o.out, &o.err)
}

// speak continues a line on a terminal with what a model says, which may have further lines. Everything else that is written begins a new line.
func (v *voice) speak(s *stream, live *status, st style, text string) {
	text = debug.Sanitize(text)
	if text == "" {
		return
	}
	live.clear()
	_, _ = io.WriteString(s.w, s.paint(st, text))
	if i := strings.LastIndexByte(text, '\n'); i >= 0 {
		v.column, text = 0, text[i+1:]
	}
	v.column += cells(text)
	v.midLine = v.column > 0
	if live != nil {
		live.voice, live.quiet = v, time.Now().Add(speakPause)
	}
	if !v.midLine {
		live.draw()
	}
}

// breakLine takes the status line away, and ends the line that a model has begun.
func (v *voice) breakLine(s *stream, live *status) {
	live.clear()
	if v.midLine {
		_, _ = io.WriteString(s.w, "\n")
		v.midLine, v.column = false, 0
	}
}
