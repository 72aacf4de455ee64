package redact

import (
	"io"
	"strings"
)

// Writer passes on what is written to it without secrets, also such as are written in pieces. What may be the beginning of one
// it keeps until more comes: at most three times the length of the longest form, and 8 KiB between any two bytes of it that no
// screen shows. For one goroutine.
type Writer struct {
	set  *Set
	to   io.Writer
	held string
}

// Writer returns a writer in front of to. Its user calls Flush at the end.
func (s *Set) Writer(to io.Writer) *Writer { return &Writer{set: s, to: to} }

// Reset makes w a new writer in front of to, for those that keep it within a value of theirs.
func (w *Writer) Reset(s *Set, to io.Writer) { *w = Writer{set: s, to: to} }

// WriteString is Write for a text.
func (w *Writer) WriteString(text string) (int, error) {
	if w.set.Empty() && w.held == "" {
		return io.WriteString(w.to, text)
	}
	n := len(text)
	text, w.held = w.held+text, ""
	if err := w.pass(text, false); err != nil {
		return 0, err
	}
	return n, nil
}

// Write passes p on. It takes all of p unless the writer behind it fails.
func (w *Writer) Write(p []byte) (int, error) {
	if w.set.Empty() && len(w.held) == 0 {
		return w.to.Write(p)
	}
	text := w.held + string(p)
	w.held = ""
	if err := w.pass(text, false); err != nil {
		return 0, err
	}
	return len(p), nil
}

// Flush passes on what was kept, when nothing more comes.
func (w *Writer) Flush() error {
	text := w.held
	w.held = ""
	return w.pass(text, true)
}

// pass writes text without secrets, up to what may be the beginning of one.
func (w *Writer) pass(text string, last bool) error {
	if w.set.Empty() {
		return write(w.to, []byte(text))
	}
	scan := w.set.found.Load().scan(text, last)
	for from := 0; ; {
		h := scan.next(from)
		if h.at < 0 {
			w.held = strings.Clone(text[h.open:])
			return write(w.to, []byte(text[from:h.open]))
		}
		if err := write(w.to, []byte(text[from:h.at]+h.name)); err != nil {
			return err
		}
		from = h.to
	}
}

func write(to io.Writer, b []byte) error {
	if len(b) == 0 {
		return nil
	}
	n, err := to.Write(b)
	if err == nil && n < len(b) {
		err = io.ErrShortWrite
	}
	return err
}

// Lines returns a writer whose every Write is looked at by itself, for those that write a line at a time, such as a handler of a
// log. It is as safe for concurrent use as to is.
func (s *Set) Lines(to io.Writer) io.Writer { return lines{s, to} }

type lines struct {
	set *Set
	to  io.Writer
}

func (l lines) Write(p []byte) (int, error) {
	if err := write(l.to, l.set.Bytes(p)); err != nil {
		return 0, err
	}
	return len(p), nil
}
