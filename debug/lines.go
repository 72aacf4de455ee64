package debug

import (
	"slices"
	"strings"

	"rnix/internal/event"
	"rnix/types"
)

// Lines makes lines of what models say in pieces, for a view that shows lines. The zero value is ready. For one goroutine.
type Lines struct {
	open []openLine // in the order in which they began
}

// openLine is what a model says in a category, whose last line may be incomplete.
type openLine struct {
	id   types.UUID
	at   int         // behind what was heard of the answer, in bytes
	line event.Event // a line of the log, with what is there of its text; empty = none has begun
}

// Take takes the next event of a stream that has pieces, and returns the events for a view of lines: lines in place of pieces, and lines as wholes. All
// other events are returned as they are.
func (l *Lines) Take(e *event.Event) []event.Event {
	switch {
	case e.Kind == event.Exited:
		return append(l.end(e.UUID), *e)
	case e.Kind != event.Piece && (e.Kind != event.LogLine || e.Answer == 0):
		return []event.Event{*e}
	}
	var done []event.Event
	i := slices.IndexFunc(l.open, func(o openLine) bool { return o.id == e.UUID && o.line.Name == e.Name })
	switch {
	case i < 0:
		i = len(l.open)
		l.open = append(l.open, openLine{id: e.UUID, at: e.At, line: began(e)})
	case l.open[i].line.Answer != e.Answer:
		if e.Answer < l.open[i].line.Answer {
			return nil
		}
		done = l.open[i].close(done)
		l.open[i].at, l.open[i].line = e.At, began(e)
	}
	o := &l.open[i]
	text, covers := e.Text, len(e.Text)
	if e.Kind == event.LogLine {
		if covers = e.Total; len(text) < covers {
			text += "\n"
		}
	}
	known := max(o.at-e.At, 0)
	if known > covers {
		return done
	}
	o.at = max(o.at, e.At+covers)
	text = text[min(known, len(text)):]
	for {
		line, rest, ok := strings.Cut(text, "\n")
		if o.line.Text == "" {
			o.line.Time = e.Time
		}
		o.line.Text += line
		if !ok {
			break
		}
		done = append(done, o.line)
		o.line.Text, text = "", rest
	}
	if e.Kind == event.LogLine {
		if n := len(done); o.line.Text == "" && n > 0 {
			done[n-1].Seq = e.Seq
		}
		done = o.close(done)
	}
	return done
}

// Open returns the lines that are incomplete so far, in the order in which their categories were heard first.
func (l *Lines) Open() (lines []event.Event) {
	for i := range l.open {
		if l.open[i].line.Text != "" {
			lines = append(lines, l.open[i].line)
		}
	}
	return lines
}

// end ends the lines of a process.
func (l *Lines) end(id types.UUID) (done []event.Event) {
	l.open = slices.DeleteFunc(l.open, func(o openLine) bool {
		if o.id == id {
			done = o.close(done)
		}
		return o.id == id
	})
	return done
}

// close appends the line that has begun, if there is one.
func (o *openLine) close(done []event.Event) []event.Event {
	if o.line.Text != "" {
		done = append(done, o.line)
		o.line.Text = ""
	}
	return done
}

// began is the beginning of a line of the log.
func began(e *event.Event) event.Event {
	return event.Event{Time: e.Time, PID: e.PID, UUID: e.UUID, Kind: event.LogLine, Name: e.Name, Answer: e.Answer}
}
