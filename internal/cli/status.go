package cli

import (
	"io"
	"strconv"
	"time"
)

// status is the one line at the bottom of a terminal that says what is going on. It exists only
// where a person looks. It belongs to one goroutine. All methods may be called on nil.
type status struct {
	s     *stream
	ascii bool
	text  func(now time.Time) string // what to show; empty = nothing
	frame int
	shown bool
	quiet time.Time // it is not drawn below a line that has begun before
	voice *voice    // what may have begun a line above; nil = it is always complete
	up    int       // 1 + the column to go back to in the line above; 0 = that is complete
}

// statusEvery is how often the line is drawn anew.
const statusEvery = 125 * time.Millisecond

// startStatus keeps a line that text makes, if standard error is a terminal that can do that, until
// its end is called.
func (o *output) startStatus(text func(now time.Time) string) {
	if !o.err.terminal || !o.talks() || !o.err.canMove() {
		return
	}
	o.live = &status{s: &o.err, ascii: o.ascii, text: text}
}

// canMove reports whether the terminal knows how to overwrite a line.
func (s *stream) canMove() bool { return s.terminal && s.width > 20 }

func (l *status) draw() {
	if l == nil {
		return
	}
	now := time.Now()
	text := l.text(now)
	if text == "" {
		l.clear()
		return
	}
	if l.voice != nil && l.voice.midLine && !l.shown {
		column := l.voice.column % l.s.width
		if now.Before(l.quiet) || column == 0 {
			return // more comes, or the terminal alone knows in which row its cursor is
		}
		_, _ = io.WriteString(l.s.w, "\n")
		l.up = 1 + column
	}
	frames := []rune("⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏")
	text = cut(text, l.s.width-3)
	if l.ascii {
		frames, text = []rune(`|/-\`), asciiMarks.Replace(text)
	}
	_, _ = io.WriteString(l.s.w, "\r\x1b[K"+l.s.paint(cyan, string(frames[l.frame%len(frames)]))+" "+text)
	l.shown = true
}

// tick turns the wheel.
func (l *status) tick() {
	if l != nil {
		l.frame++
		l.draw()
	}
}

// clear takes the line away until the next draw.
func (l *status) clear() {
	if l != nil && l.shown {
		_, _ = io.WriteString(l.s.w, "\r\x1b[K")
		if l.up > 0 {
			_, _ = io.WriteString(l.s.w, "\x1b[A\x1b["+strconv.Itoa(l.up)+"G")
		}
		l.shown, l.up = false, 0
	}
}

// end takes the line away for good.
func (l *status) end() {
	if l != nil {
		l.clear()
		l.text = func(time.Time) string { return "" }
	}
}
