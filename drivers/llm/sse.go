package llm

import (
	"bufio"
	"bytes"
	"errors"
	"io"
)

// maxEvent bounds one server-sent event, in bytes.
const maxEvent = 16 << 20

var errEventTooLong = errors.New("an event is longer than 16 MiB")

// sseEvent is one server-sent event.
type sseEvent struct {
	name string // of the event; may be empty
	data []byte // valid until the next call
	torn bool   // the stream ended inside it
}

// sseReader divides a stream into server-sent events. Lines end with LF, CR LF or CR; comments and
// fields other than "event" and "data" are skipped; events without data are not reported.
type sseReader struct {
	r     *bufio.Reader
	data  []byte
	first bool // the first line is still to come
	skip  bool // the last line ended with CR: an LF right behind it belongs to it
}

func newSSEReader(r io.Reader) *sseReader {
	return &sseReader{r: bufio.NewReaderSize(r, 32<<10), first: true}
}

// next returns the next event. It returns io.EOF at the end, and errEventTooLong for an event over
// the bound; any other error is the reader's.
func (s *sseReader) next() (sseEvent, error) {
	var ev sseEvent
	s.data = s.data[:0]
	any := false
	for {
		line, err := s.line(maxEvent - len(s.data))
		if err != nil && err != io.EOF {
			return sseEvent{}, err
		}
		if len(line) == 0 && (err == io.EOF || any) {
			if !any {
				return sseEvent{}, io.EOF
			}
			ev.data, ev.torn = bytes.TrimSuffix(s.data, []byte("\n")), err == io.EOF
			return ev, nil
		}
		field, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimPrefix(value, []byte(" "))
		switch string(field) {
		case "event":
			ev.name = string(value)
		case "data":
			s.data = append(append(s.data, value...), '\n')
			any = true
		case "":
			if len(line) == 0 {
				ev.name = "" // an event without data
			}
		}
	}
}

// line returns the next line without its end; with io.EOF, what stands before the end of the stream.
func (s *sseReader) line(limit int) ([]byte, error) {
	var line []byte
	for {
		c, err := s.r.ReadByte()
		if err != nil {
			if err == io.EOF && len(line) > 0 {
				return s.begin(line), nil // the end comes with the next call
			}
			return nil, err
		}
		if s.skip && c == '\n' {
			s.skip = false
			continue
		}
		s.skip = false
		if c == '\n' || c == '\r' {
			s.skip = c == '\r'
			return s.begin(line), nil
		}
		if len(line) >= limit {
			return nil, errEventTooLong
		}
		line = append(line, c)
		// What is buffered up to the end of the line is taken at once.
		if rest, _ := s.r.Peek(s.r.Buffered()); len(rest) > 0 {
			if i := bytes.IndexAny(rest, "\r\n"); i >= 0 {
				rest = rest[:i]
			}
			rest = rest[:min(len(rest), limit-len(line))]
			line = append(line, rest...)
			_, _ = s.r.Discard(len(rest)) // they are buffered
		}
	}
}

// begin cuts a byte order mark off the first line.
func (s *sseReader) begin(line []byte) []byte {
	if s.first {
		s.first = false
		line = bytes.TrimPrefix(line, []byte("\ufeff"))
	}
	return line
}
